"""What the filters of ``corpus.clean`` are made of: one idea a file.

``rewrite`` holds the regular expressions, ``characters`` the tables by code point, ``columns``
the way between Arrow and compiled loops, ``bots`` and ``speech`` what removes a post.
"""
