"""Texts that try to run a script, to leave their element, or to be read as a template."""

from __future__ import annotations

HTML = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<script src=//outside.invalid/x.js></script>",
    "<img src=x onerror=alert(3)>",
    "<img src=//outside.invalid/pixel.png>",
    "<svg onload=alert(4)>",
    "<svg><script>alert(5)</script></svg>",
    "<svg><animate onbegin=alert(6) attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(7)>",
    "<iframe srcdoc='<script>alert(8)</script>'></iframe>",
    "<iframe src=javascript:alert(9)></iframe>",
    "<object data=javascript:alert(10)></object>",
    "<embed src=javascript:alert(11)>",
    "<details open ontoggle=alert(12)>",
    "<input autofocus onfocus=alert(13)>",
    "<body onload=alert(14)>",
    "<video><source onerror=alert(15)></video>",
    "<marquee onstart=alert(16)>",
    "<a href=javascript:alert(17)>press</a>",
    "<form action=//outside.invalid><button>send</button></form>",
    "<base href=//outside.invalid/>",
    "<meta http-equiv=refresh content='0;url=//outside.invalid'>",
    "<link rel=stylesheet href=//outside.invalid/x.css>",
    "<style>@import '//outside.invalid/y.css'; * { color: red }</style>",
    "<noscript><p title='</noscript><img src=x onerror=alert(18)>'>",
    "<template><script>alert(19)</script></template>",
    "<!--><img src=x onerror=alert(20)>-->",
    "<![CDATA[><script>alert(21)</script>]]>",
    "<scr\u200bipt>alert(22)</script>",
    "＜script＞alert(23)＜/script＞",
    "<ſcript>alert(24)</ſcript>",
    "<IMG SRC=x OnErRoR=alert(25)//",
]
"""HTML that runs, or fetches, if it is not escaped."""

LEAVING = [
    "</textarea><script>alert(30)</script>",
    "</title><script>alert(31)</script>",
    "</blockquote></p></main><script>alert(32)</script>",
    '"><script>alert(33)</script>',
    "'><img src=x onerror=alert(34)>",
    '" onfocus=alert(35) autofocus x="',
    "' onmouseover=alert(36) x='",
    "`onmouseover=alert(37)`",
    "&lt;script&gt;alert(38)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(39)&#62;",
]
"""Texts that end the element or the attribute in which they stand."""

TEMPLATES = [
    "{{ 7 * 191 }}",
    "{% for x in [1] %}pwned{% endfor %}",
    "{{ settings.__class__.__mro__ }}",
    "{0.__class__} {title} %(title)s ${7*191} #{7*191} <%= 7*191 %>",
]
"""Templates of the server's side; 1337 on a page shows that one was evaluated."""

UNICODE = [
    "\u202egnp.exe\u202c reversed",
    "a\u0300" + "\u0301" * 30,
    "\ufeff\u2028\u2029line",
    "\U000e0001\U000e0041 tag",
    "﷽ 𝕊𝕔𝕣𝕚𝕡𝕥 👩‍👧‍👦",
]

MARKDOWN = """
[a](javascript:alert(50)) [b](JaVaScRiPt:alert(51)) [c](&#106;avascript:alert(52))
[d](java\tscript:alert(53)) [e](data:text/html;base64,PHNjcmlwdD5hbGVydCg1NCk8L3NjcmlwdD4=)
[f](vbscript:msgbox(55)) [g](  javascript:alert(56)) [h](\\x01javascript:alert(57))
<javascript:alert(58)> <a href="javascript:alert(59)">press</a> ![p](javascript:alert(60))
[i]: javascript:alert(61)
[i] ![q](//outside.invalid/q.png) [j](" onmouseover="alert(62)) [k](x "y\\" onclick=alert(63)")
[l](file:///etc/passwd) `<script>alert(64)</script>`

```html" onload="alert(65)
<script>alert(66)</script>
```

| <script>alert(67)</script> | x |
|:--:|--:|
| <img src=x onerror=alert(68)> | y |
"""
"""Instructions of a researcher who copied them from an unsafe place."""

TEXTS = HTML + LEAVING + TEMPLATES + UNICODE
