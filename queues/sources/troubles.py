"""The ways in which a service fails, for people and for the next try."""


class TroubleError(Exception):
    """A service did not do what it was asked. The text says what happened and what to do."""


class AwayError(TroubleError):
    """The service cannot be reached or fails; it is asked again later. Nothing follows from it."""


class WaitError(TroubleError):
    """The service asked us to wait so many seconds."""

    def __init__(self, sentence: str, seconds: float) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class StoppedError(TroubleError):
    """A person has to do something: the access was taken away, a column is gone. Asking again does not help."""


class LostPlaceError(TroubleError):
    """The place where a read was interrupted is no longer known: the read begins again."""
