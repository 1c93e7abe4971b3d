"use strict";
// Sorts tables by the values in data-value; rows without one stay last.
for (const table of document.querySelectorAll("table.board")) {
  const body = table.tBodies[0];
  for (const button of table.querySelectorAll("thead button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const down = head.getAttribute("aria-sort")
        ? head.getAttribute("aria-sort") !== "descending"
        : head.dataset.first !== "ascending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const column = head.cellIndex;
      const key = (row) => row.cells[column].dataset.value ?? "";
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a), y = key(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        const numbers = head.dataset.kind === "number";
        const order = numbers ? Number(x) - Number(y) : x.localeCompare(y);
        return down ? -order : order;
      });
      body.append(...rows);
    });
  }
}
