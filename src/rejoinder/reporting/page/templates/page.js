"use strict";
(function () {
  // printing opens all details
  var opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.prototype.filter.call(document.querySelectorAll("details"), function (one) { return !one.open; });
    opened.forEach(function (one) { one.open = true; });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (one) { one.open = false; });
  });

  var data = JSON.parse(document.getElementById("data").textContent);
  if (!data) return;
  // positions of the fields of an item
  var ID = 0, SYSTEM = 1, CONTEXT = 2, REPLY = 3, SPANS = 4, RATING = 5, SCORES = 6, REFERENCES = 7, MORE = 8, REASONS = 9, INTERVALS = 10;
  var FIRST_COLUMNS = 3;
  var rated = data.items.some(function (item) { return item[RATING] !== null; });
  var state = { words: "", system: -1, missing: -2, sort: null, down: true, page: 0, size: 25, columns: [] };
  data.metrics.forEach(function (_, number) { if (number < FIRST_COLUMNS) state.columns.push(number); });
  var haystacks = null;

  function make(name, properties, children) {
    var element = document.createElement(name);
    Object.keys(properties || {}).forEach(function (key) {
      if (key === "text") element.textContent = properties[key];
      else if (key.slice(0, 2) === "on") element.addEventListener(key.slice(2), properties[key]);
      else element.setAttribute(key, properties[key]);
    });
    (children || []).forEach(function (child) { if (child) element.appendChild(child); });
    return element;
  }

  function number(value, digits) {
    if (value === null) return "–";
    var text = value.toFixed(digits === undefined ? 3 : digits);
    return text.replace(/^(-?)0\./, "$1.").replace("-", "−");
  }

  // text nodes with some of the text marked
  function marked(text, spans) {
    var pieces = [], at = 0;
    for (var i = 0; i < spans.length; i += 2) {
      pieces.push(document.createTextNode(text.slice(at, spans[i])));
      pieces.push(make("mark", { text: text.slice(spans[i], spans[i + 1]) }));
      at = spans[i + 1];
    }
    pieces.push(document.createTextNode(text.slice(at)));
    return pieces;
  }

  var keys = document.getElementById("keys").content.children;
  function keyOf(system) { return keys[system % keys.length].cloneNode(true); }

  function haystack(index) {
    if (!haystacks) {
      haystacks = data.items.map(function (item) {
        var texts = [item[ID], data.systems[item[SYSTEM]], data.texts[item[REPLY]]];
        item[CONTEXT].forEach(function (turn) { texts.push(data.texts[turn]); });
        item[REFERENCES].forEach(function (reference) { texts.push(data.texts[reference[0]]); });
        return texts.join("\n").toLowerCase();
      });
    }
    return haystacks[index];
  }

  function chosen() {
    var words = state.words.toLowerCase().split(/\s+/).filter(Boolean), matching = [];
    data.items.forEach(function (item, index) {
      if (state.system >= 0 && item[SYSTEM] !== state.system) return;
      if (state.missing === -1 && !Object.keys(item[REASONS]).length) return;
      if (state.missing >= 0 && !(state.missing in item[REASONS])) return;
      if (words.length) {
        var text = haystack(index);
        if (!words.every(function (word) { return text.indexOf(word) >= 0; })) return;
      }
      matching.push(index);
    });
    if (state.sort === null) return matching;
    var sort = state.sort, sign = state.down ? -1 : 1;
    function value(index) {
      var item = data.items[index];
      if (sort === "system") return data.systems[item[SYSTEM]];
      if (sort === "reply") return data.texts[item[REPLY]];
      return sort === "rating" ? item[RATING] : item[SCORES][sort];
    }
    return matching.sort(function (a, b) {
      var x = value(a), y = value(b);
      if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1; // missing values last
      if (typeof x === "string") return -sign * (x < y ? 1 : x > y ? -1 : 0) || a - b;
      return sign * (x - y) || a - b;
    });
  }

  function score(item, metric) {
    if (item[SCORES][metric] !== null) return { text: number(item[SCORES][metric]) };
    var reason = item[REASONS][metric];
    return { text: "–", "class": "missing", title: reason === undefined ? "" : data.reasons[reason] };
  }

  function columns() {
    var all = [{ name: "Reply", sort: "reply", kind: "reply" }, { name: "System", sort: "system", kind: "system" }];
    if (rated) all.push({ name: "People", sort: "rating", kind: "num" });
    state.columns.forEach(function (metric) { all.push({ name: data.metrics[metric], sort: metric, kind: "num", code: true }); });
    return all;
  }

  function heading(column) {
    var active = state.sort === column.sort;
    var arrow = make("span", { "aria-hidden": "true", text: active ? (state.down ? " ↓" : " ↑") : "" });
    var button = make("button", { type: "button", onclick: function () {
      state.down = active ? !state.down : column.kind === "num";
      state.sort = column.sort;
      state.page = 0;
      draw();
      var again = table.querySelector('[data-sort="' + column.sort + '"]');
      if (again) again.focus();
    }, "data-sort": column.sort }, [make(column.code ? "code" : "span", { text: column.name }), arrow]);
    var attributes = { scope: "col", role: "columnheader", "class": column.kind };
    if (active) attributes["aria-sort"] = state.down ? "descending" : "ascending";
    return make("th", attributes, [button]);
  }

  function line(index) {
    var item = data.items[index], turns = item[CONTEXT];
    var reply = make("td", { "class": "reply", role: "cell" }, [
      turns.length ? make("bdi", { "class": "to", dir: "auto", text: data.texts[turns[turns.length - 1]] }) : null,
      make("bdi", { dir: "auto" }, marked(data.texts[item[REPLY]], item[SPANS]))
    ]);
    var who = make("span", { "class": "who" }, [keyOf(item[SYSTEM]), make("bdi", { text: data.systems[item[SYSTEM]] })]);
    var cells = [reply, make("td", { "class": "system", role: "cell" }, [who])];
    if (rated) cells.push(make("td", { "class": "num", role: "cell", "data-name": "people", text: number(item[RATING], 2) }));
    state.columns.forEach(function (metric) {
      var cell = score(item, metric);
      cell["class"] = "num " + (cell["class"] || "");
      cell.role = "cell";
      cell["data-name"] = data.metrics[metric];
      cells.push(make("td", cell));
    });
    var row, button = make("button", { type: "button", "class": "open", "aria-expanded": "false", text: "Details" });
    button.setAttribute("aria-label", "Details of " + item[ID]);
    button.addEventListener("click", function () {
      var open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      button.textContent = open ? "Details" : "Close";
      if (open) row.nextSibling.remove();
      else row.after(make("tr", { "class": "inside", role: "row" }, [make("td", { colspan: cells.length, role: "cell" }, inside(item))]));
    });
    cells.push(make("td", { "class": "does", role: "cell" }, [button]));
    row = make("tr", { role: "row" }, cells);
    return row;
  }

  function inside(item) {
    var elements = [];
    function part(title, content) { elements.push(make("h4", { text: title }), content); }
    if (item[CONTEXT].length) {
      part("Context, oldest turn first", make("ol", {}, item[CONTEXT].map(function (turn) {
        return make("li", { dir: "auto", text: data.texts[turn] });
      })));
    }
    part("Reply of " + data.systems[item[SYSTEM]] + " (" + item[ID] + ")",
      make("p", { "class": "said", dir: "auto" }, marked(data.texts[item[REPLY]], item[SPANS])));
    if (item[REFERENCES].length) {
      var order = item[REFERENCES].map(function (_, place) { return place; });
      function weight(place) { var w = item[REFERENCES][place][1]; return w === null ? 1 : w; }
      order.sort(function (a, b) { return weight(b) - weight(a) || a - b; });
      var weighted = item[REFERENCES].some(function (reference) { return reference[1] !== null; });
      var list = make("ul", { "class": weighted ? "weighted" : "" }, order.map(function (place) {
        var reference = item[REFERENCES][place], about = [];
        if (reference[3] !== null) about.push("similarity " + number(reference[3], 2));
        if (reference[2] !== null) about.push(data.sources[reference[2]]);
        return make("li", {}, [
          make("span", { "class": "weight" }, [
            make("span", { "class": "hidden", text: reference[1] === null ? "no weight" : "weight " }),
            document.createTextNode(reference[1] === null ? "" : number(reference[1], 2))
          ]),
          make("bdi", { dir: "auto" }, marked(data.texts[reference[0]], reference[4])),
          document.createTextNode(" "),
          about.length ? make("span", { "class": "about", text: about.join(", ") }) : null
        ]);
      }));
      part("References" + (weighted ? " with weights" : "") + (item[MORE] ? " (" + item[MORE] + " more are not shown)" : ""), list);
    }
    var scores = data.metrics.map(function (metric, place) {
      var value = item[SCORES][place], reason = item[REASONS][place];
      var text = value === null ? "unscored: " + (reason === undefined ? "" : data.reasons[reason]) : number(value, 4);
      var ends = item[INTERVALS][place];
      if (value !== null && ends) text += ", people " + number(ends[0], 2) + " to " + number(ends[1], 2);
      return make("div", {}, [make("dt", {}, [make("code", { text: metric })]), make("dd", { text: text })]);
    });
    if (item[RATING] !== null) scores.unshift(make("div", {}, [make("dt", { text: "people" }), make("dd", { text: number(item[RATING], 2) })]));
    part("Scores", make("dl", {}, scores));
    return elements;
  }

  function option(value, text) { return make("option", { value: value, text: text }); }
  function select(label, options, act, kind) {
    var box = make("select", { onchange: function () { act(box.value); state.page = 0; draw(); } }, options);
    return field(label, box, kind);
  }
  var fields = 0;
  function field(label, box, kind) {
    box.id = "field-" + fields++;
    return make("div", { "class": "field " + (kind || "") }, [make("label", { "for": box.id, text: label }), box]);
  }

  var browser = document.getElementById("browser");
  browser.textContent = "";
  var table = make("table", { "class": "items", role: "table" });
  var status = make("p", { role: "status", "aria-live": "polite" });
  var pages = make("div", { "class": "pages" });

  var waiting = null, sorting;
  var search = make("input", { type: "search", autocomplete: "off", oninput: function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () { state.words = search.value; state.page = 0; draw(); }, 120);
  } });
  var tools = make("div", { "class": "tools", role: "search", "aria-label": "Items" }, [
    field("Search replies, contexts, references", search, "search"),
    data.systems.length > 1 ? select("System", [option(-1, "all")].concat(data.systems.map(function (name, place) {
      return option(place, name);
    })), function (value) { state.system = Number(value); }) : null,
    data.reasons.length ? select("Scored", [option(-2, "all items"), option(-1, "unscored by some metric")].concat(
      data.metrics.map(function (name, place) { return option(place, "unscored by " + name); }).filter(function (_, place) {
        return data.items.some(function (item) { return place in item[REASONS]; });
      })), function (value) { state.missing = Number(value); }) : null,
    sorting = select("Sort by", [option("", "order in the file"), option("reply", "reply"), option("system", "system")]
      .concat(rated ? [option("rating", "people")] : [])
      .concat(data.metrics.map(function (name, place) { return option(place, name); })), function (value) {
        state.sort = value === "" ? null : isNaN(Number(value)) ? value : Number(value);
        state.down = value !== "reply" && value !== "system";
      }),
    make("button", { type: "button", "class": "phone-only", text: "Reverse order", onclick: function () {
      state.down = !state.down; state.page = 0; draw();
    } }),
    select("Rows", [25, 50, 100].map(function (size) { return option(size, size); }), function (value) { state.size = Number(value); })
  ]);
  var boxes = make("fieldset", { "class": "columns" }, [make("legend", { "class": "note", text: "Metrics in the table" })].concat(
    data.metrics.map(function (name, place) {
      var box = make("input", { type: "checkbox", onchange: function () {
        state.columns = data.metrics.map(function (_, n) { return n; }).filter(function (n) {
          return boxes.querySelectorAll("input")[n].checked;
        });
        draw();
      } });
      box.checked = place < FIRST_COLUMNS;
      return make("label", {}, [box, make("code", { text: name })]);
    })));
  var choice = make("details", { "class": "choice" }, [make("summary", { text: "Columns" }), boxes]);
  browser.append(tools, data.metrics.length > 1 ? choice : "", status,
    make("div", { "class": "wide", role: "region", "aria-label": "Items", tabindex: "0" }, [table]), pages);

  function draw() {
    var matching = chosen(), last = Math.max(0, Math.ceil(matching.length / state.size) - 1);
    state.page = Math.min(state.page, last);
    var start = state.page * state.size, some = matching.slice(start, start + state.size);
    sorting.querySelector("select").value = state.sort === null ? "" : String(state.sort);
    table.textContent = "";
    table.append(
      make("caption", { text: "Replies, each below the turn that it answers" }),
      make("thead", { role: "rowgroup" }, [make("tr", { role: "row" }, columns().map(heading).concat([
        make("th", { scope: "col", role: "columnheader", "class": "does" }, [make("span", { "class": "hidden", text: "More" })])
      ]))]),
      make("tbody", { role: "rowgroup" }, some.map(line)));
    status.textContent = !matching.length ? "No items match." :
      (start + 1).toLocaleString("en") + " to " + (start + some.length).toLocaleString("en") + " of " +
      matching.length.toLocaleString("en") + (matching.length < data.items.length ? " matching" : "") + " items";
    pages.textContent = "";
    [["Previous", -1, state.page === 0], ["Next", 1, state.page === last]].forEach(function (one) {
      var button = make("button", { type: "button", text: one[0], onclick: function () {
        state.page += one[1];
        draw();
        var again = Array.prototype.find.call(pages.querySelectorAll("button"), function (b) { return b.textContent === one[0]; });
        if (again.disabled) again = pages.querySelector("button:enabled");
        if (again) again.focus();
        table.scrollIntoView({ block: "start" });
      } });
      button.disabled = one[2];
      pages.append(button);
    });
    pages.append(make("p", { "class": "note", text: "Page " + (state.page + 1) + " of " + (last + 1) }));
  }

  draw();
  document.documentElement.dataset.ready = "yes";
})();
