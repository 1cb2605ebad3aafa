"""Says in plain words why a connection failed: the step, the cause, the host and the port.

The words are for the person who typed the address and the password: no class names, no stack trace, and of the other
side's answer only its number. They hold no secret: only host and port are taken from the address.
"""

import errno
import imaplib
import re
import smtplib
import socket
import ssl
from collections.abc import Iterator, Mapping
from enum import StrEnum

LONGEST_HOST = 100
LONGEST = 200


class Step(StrEnum):
    """The steps of a connection."""

    LOOK_UP = "look_up"  # looking up the host's name
    CONNECT = "connect"
    TLS = "tls"
    LOG_IN = "log_in"
    SEND = "send"  # a request or a message: it may have arrived


# The words before the cause; "connection refused" and "name not found" name their step by themselves.
BEFORE: Mapping[Step, str] = {
    Step.LOOK_UP: "",
    Step.CONNECT: "",
    Step.TLS: "TLS failed: ",
    Step.LOG_IN: "login failed: ",
    Step.SEND: "",
}


# By number, since each system has other words.
NUMBERS: Mapping[int, str] = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "the server closed the connection",
    errno.EPIPE: "the server closed the connection",
    errno.ECONNABORTED: "the server closed the connection",
    errno.ETIMEDOUT: "no answer in time",
    errno.EHOSTUNREACH: "host cannot be reached",
    errno.ENETUNREACH: "network cannot be reached",
    errno.EADDRNOTAVAIL: "address cannot be used from here",
    errno.EACCES: "connection not permitted on this machine",
    errno.EPERM: "connection not permitted on this machine",
    errno.EMFILE: "too many open connections on this machine",
}
# OpenSSL's numbers of what is wrong with a certificate (X509_V_ERR_...).
CERTIFICATES: Mapping[int, str] = {
    9: "certificate is not valid yet",
    10: "certificate has expired",
    18: "certificate is self-signed",
    19: "certificate is self-signed",
    20: "certificate is from an unknown issuer",
    21: "certificate is from an unknown issuer",
    23: "certificate was revoked",
    62: "certificate is for another name",
    64: "certificate is for another name",
}
# OpenSSL's words for what went wrong before a certificate was seen.
HANDSHAKES: Mapping[str, str] = {
    "WRONG_VERSION_NUMBER": "the server does not speak TLS on this port",
    "UNKNOWN_PROTOCOL": "the server does not speak TLS on this port",
    "HTTP_REQUEST": "the server does not speak TLS on this port",
    "RECORD_LAYER_FAILURE": "the server does not speak TLS on this port",
    "UNSUPPORTED_PROTOCOL": "no common TLS version",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no common TLS version",
    "NO_SHARED_CIPHER": "no common encryption",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "no common encryption",
    "UNEXPECTED_EOF_WHILE_READING": "the server closed the connection",
}
_NUMBER = re.compile(r"\[Errno (\d{1,5})\]")


def describe_connection_error(
    error: BaseException,
    host: str,
    port: int | None,
    step: Step,
    *,
    seconds: float | None = None,
    otherwise: str = "connection failed",
) -> str:
    """Return why a connection failed, as in "connection refused, 127.0.0.1:3000".

    `seconds` is how long it was waited for, where that is known; `otherwise` is the cause where the error names none.
    A failed look-up or a failed TLS handshake is told as such, whatever `step` says: the error itself knows best.
    """
    for cause in _causes(error):
        if found := _words(cause, seconds):
            return _sentence(_step_of(cause, step), found, host, port)
    return _sentence(step, otherwise, host, port)


def place(host: str, port: int | None) -> str:
    """Return host and port as one word: mail.example:587, [::1]:25."""
    name = "".join(letter for letter in host if letter.isprintable())[:LONGEST_HOST]
    name = f"[{name}]" if ":" in name else name
    return f"{name}:{port}" if port else name


def _sentence(step: Step, cause: str, host: str, port: int | None) -> str:
    where = place(host, port)
    if step is Step.LOOK_UP:
        return f"{cause}: {where}"[:LONGEST]
    return f"{BEFORE[step]}{cause}, {where}"[:LONGEST]


WRAPPED = (
    "certificate_error",
    "os_error",
    "exceptions",
)  # where aiohttp and asyncio keep the system's error


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that the error holds, the error itself, and the errors that caused it.

    The held errors come first: aiohttp's errors are of the same types as those of the system, without their numbers.
    """
    for name in WRAPPED:
        held = getattr(error, name, None)
        for each in held if isinstance(held, list | tuple) else [held]:
            if isinstance(each, BaseException):
                yield from _causes(each)
    yield error
    if (cause := error.__cause__ or error.__context__) is not None:
        yield from _causes(cause)


def _step_of(error: BaseException, step: Step) -> Step:
    if isinstance(error, socket.gaierror | UnicodeError):
        return Step.LOOK_UP
    return Step.TLS if isinstance(error, ssl.SSLError) else step


def _words(error: BaseException, seconds: float | None) -> str:
    """Return the meaning of one error; empty where only the error that it wraps may tell."""
    if isinstance(error, socket.gaierror | UnicodeError):
        return _look_up(error)
    if isinstance(error, ssl.SSLError):
        return _tls(error)
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s" if seconds else "no answer in time"
    if isinstance(error, imaplib.IMAP4.abort | smtplib.SMTPServerDisconnected | EOFError):
        return "" if error.__context__ or error.__cause__ else "the server closed the connection"
    return _system(error) if isinstance(error, OSError) else ""


def _look_up(error: socket.gaierror | UnicodeError) -> str:
    away = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
    return "name server does not answer" if away else "name not found"


def _tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return CERTIFICATES.get(getattr(error, "verify_code", 0), "certificate is not trusted")
    return HANDSHAKES.get(getattr(error, "reason", "") or "", "no agreement on the encryption")


def _system(error: OSError) -> str:
    """Return the words for a system error number. Where several addresses failed, the numbers are only in the text."""
    numbers = [error.errno] if error.errno is not None else [int(n) for n in _NUMBER.findall(str(error))]
    return next((NUMBERS[number] for number in numbers if number in NUMBERS), "")
