"""Programs that post by themselves, by the name of the client that a platform gives."""

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
"""Expressions (RE2, case does not matter) of which one is found in the client of such a post."""


def by_bots(clients: pa.Array, patterns: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which posts come from such a client; an unknown client is none."""
    if not patterns or clients.null_count == len(clients):
        return np.zeros(len(clients), np.bool_)
    # an archive knows few clients: each is looked at once a batch
    names = clients.dictionary_encode()
    wanted = "|".join(f"(?:{pattern})" for pattern in patterns)
    found = pc.match_substring_regex(names.dictionary, wanted, ignore_case=True)
    found = pc.fill_null(found.take(names.indices), False)
    return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
