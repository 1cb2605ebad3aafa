"""Messages to people who did not reply: rules, and the queue that they go through (SPEC C4, C5).

    entry       sent and unanswered -> queued     if there is room, and urgency enough
    hygiene     queued -> removed                 every 15 minutes, each with its reason
    sending     queued -> on its way -> sent      as runs of their own, counted once they have landed
    take_back   queued or on its way -> removed   as soon as the recipient replies

Every change of the queue holds `queue.lock()`, or the recipient's row, and never waits for one while holding the
other.
"""
