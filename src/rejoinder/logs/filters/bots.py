"""Find posts of bots and schedulers by the client that the platform names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

CLIENTS = (
    r"(?:^|[^t]|(?:^|[^e])t)bot",  # twittbot.net, EasyBotter, …; Tweetbot is for people
    r"ifttt|zapier|integromat|make\.com|power automate|azure logic apps|google apps script",
    r"dlvr\.it|twitterfeed|feedburner|feed2tw|rss|echofon feed",
    r"hootsuite|buffer|sprout social|socialoomph|statusbrew|socialdog|sprinklr|recurpost|"
    r"postplanner|crowdfire|coschedule|falcon\.io|agorapulse|later\.com|publer|contentstudio",
    r"wordpress|blogger|tumblr|paper\.li|nikeplus|foursquare|swarm",
    r"autotweet|auto tweet|twiccolo|ツイ助|ついすけ|twisuke|自動|定期|rakubo|botbird|"
    r"shindanmaker|診断メーカー|twirobo|twimerumaga|services for twitter",
)
"""Regular expressions (RE2, ignoring case) that match such clients."""


def posted_by_bots(clients: pa.Array, patterns: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which posts come from such a client; an unknown client does not count."""
    if not patterns or clients.null_count == len(clients):
        return np.zeros(len(clients), np.bool_)
    # an archive has few different clients: each is matched once a batch
    names = clients.dictionary_encode()
    expression = "|".join(f"(?:{pattern})" for pattern in patterns)
    matches = pc.match_substring_regex(names.dictionary, expression, ignore_case=True)
    matches = pc.fill_null(matches.take(names.indices), False)
    return matches.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
