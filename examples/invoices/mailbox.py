"""The mailbox: gives the attachments of a Maildir, of a folder of `.eml` files, or of an IMAP folder.

Mail comes from strangers, so everything is bounded, and a mail or part that cannot be used becomes a named
`Skipped`, never an exception. Nothing is written, moved or marked as read. Called by the task before its first step.
"""

from __future__ import annotations

import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import collapse_rfc2231_value, parseaddr
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

MAIL_BYTES_MAX = 40 * 1024 * 1024
ATTACHMENT_BYTES_MAX = 25 * 1024 * 1024
NESTED_PARTS_MAX = 50
PARTS_MAX = 200
NAME_CHARACTERS_MAX = 120
NESTING = re.compile(rb"(?im)^content-type\s*:\s*(?:multipart|message)/")
BODY_TYPES = ("text/plain", "text/html")
NOT_FOR_US = ("image/", "application/pkcs7-", "application/pgp-", "application/x-pkcs7-")


class SkippedCode(StrEnum):
    """Why a mail or a part of it gives no attachment. Stable: reports and tests group by it."""

    TOO_LARGE = "mail_too_large"
    TOO_NESTED = "mail_too_nested"
    UNREADABLE = "mail_unreadable"
    NO_ATTACHMENT = "no_attachment"
    EMPTY_ATTACHMENT = "empty_attachment"
    WINMAIL = "winmail"


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attached file.

    `mail_id` is the Message-ID, else the mail's digest; a second mail of the same id is `…#2`. `name` is safe to
    use as a file name and unique in its mail. `digest` is the SHA-256 of `content` in hex. `sender` is an
    address, or "".
    """

    mail_id: str
    sender: str
    name: str
    digest: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Skipped:
    """A mail or part that gives no attachment; `reason` is one sentence: what was expected, what was found."""

    mail_id: str
    sender: str
    name: str
    code: SkippedCode
    reason: str


Collected = Attachment | Skipped


@dataclass(frozen=True, slots=True)
class RawMail:
    """One mail as it was received; `name` says where in the mailbox it is."""

    name: str
    content: bytes


def collect(mailbox: Path) -> list[Collected]:
    """Give the attachments of a Maildir (`new` and `cur`) or of a folder of `.eml` files, in order of file name.

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such folder.
    """
    return collect_mails(_read_mail(path) for path in _mail_paths(mailbox))


def collect_mails(mails: Iterable[RawMail | Skipped]) -> list[Collected]:
    """Give the attachments of these mails, in the order given; a mail skipped before it was read stays in its place."""
    seen: Counter[str] = Counter()
    return [found for mail in mails for found in _attachments_of(mail, seen)]


def _mail_paths(mailbox: Path) -> list[Path]:
    if (mailbox / "new").is_dir() and (mailbox / "cur").is_dir():
        found = [path for part in ("new", "cur") for path in (mailbox / part).iterdir()]
        # A Maildir's flags follow a colon and change when somebody reads the mail; the order must not.
        return sorted(found, key=lambda path: path.name.partition(":")[0])
    return sorted(path for path in mailbox.iterdir() if path.suffix.lower() == ".eml")


def _read_mail(path: Path) -> RawMail | Skipped:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return unread(path.name, "expected a regular file, found a link, folder or device")
        return mail_over_bound(path.name, found.st_size) or RawMail(path.name, path.read_bytes())
    except OSError as error:
        return unread(path.name, f"expected a readable mail, found {error.strerror}")


def mail_over_bound(name: str, size: int) -> Skipped | None:
    """Skip a mail of more than `MAIL_BYTES_MAX` bytes by its size alone."""
    if size <= MAIL_BYTES_MAX:
        return None
    return unread(name, f"expected at most {MAIL_BYTES_MAX} bytes, found {size}", SkippedCode.TOO_LARGE)


def unread(name: str, reason: str, code: SkippedCode = SkippedCode.UNREADABLE) -> Skipped:
    """Skip a mail that was not read; its place in the mailbox is all that is known of it."""
    return Skipped(mail_id=name, sender="", name=name, code=code, reason=reason)


def _attachments_of(mail: RawMail | Skipped, seen: Counter[str]) -> Iterator[Collected]:
    if isinstance(mail, Skipped):
        yield mail
        return
    # Counted before parsing: the standard parser recurses once for each level.
    if len(NESTING.findall(mail.content)) > NESTED_PARTS_MAX:
        reason = f"expected at most {NESTED_PARTS_MAX} nested parts, found more"
        yield unread(mail.name, reason, SkippedCode.TOO_NESTED)
        return
    message = message_from_bytes(mail.content, policy=policy.compat32)
    mail_id = _unique(_mail_id(message, mail.content), seen)
    sender = _sender(message)
    found = list(_parts(message, mail_id, sender))
    if not found:
        reason = "expected an attached invoice, found a mail without attachments"
        found = [Skipped(mail_id, sender, mail.name, SkippedCode.NO_ATTACHMENT, reason)]
    yield from found


def _parts(message: Message, mail_id: str, sender: str) -> Iterator[Collected]:
    names: set[str] = set()
    for index, part in enumerate(message.walk(), start=1):
        if index > PARTS_MAX:
            reason = f"expected at most {PARTS_MAX} parts, found more; the rest was not read"
            yield Skipped(mail_id, sender, "", SkippedCode.TOO_NESTED, reason)
            return
        if part.is_multipart() or not _is_attachment(part):
            continue
        name = _free_name(safe_name(_file_name(part), fallback=f"attachment-{index}"), names)
        names.add(name)
        yield _attachment(part, mail_id, sender, name)


def _attachment(part: Message, mail_id: str, sender: str, name: str) -> Collected:
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    if part.get_content_maintype() == "multipart":
        reason = "expected the parts of a multipart mail, found none that can be told apart"
        return Skipped(mail_id, sender, name, SkippedCode.UNREADABLE, reason)
    if name.lower() == "winmail.dat" or part.get_content_type() == "application/ms-tnef":
        reason = "expected plain attachments, found Outlook's winmail.dat; ask the sender to send the files themselves"
        return Skipped(mail_id, sender, name, SkippedCode.WINMAIL, reason)
    if not content:
        reason = "expected a file, found an attachment of 0 bytes"
        return Skipped(mail_id, sender, name, SkippedCode.EMPTY_ATTACHMENT, reason)
    if len(content) > ATTACHMENT_BYTES_MAX:
        reason = f"expected a file of at most {ATTACHMENT_BYTES_MAX} bytes, found {len(content)}"
        return Skipped(mail_id, sender, name, SkippedCode.TOO_LARGE, reason)
    return Attachment(mail_id, sender, name, sha256(content).hexdigest(), content)


def _is_attachment(part: Message) -> bool:
    kind = part.get_content_type()
    if kind.startswith(NOT_FOR_US):
        return False
    return bool(_file_name(part)) or kind not in BODY_TYPES


def _file_name(part: Message) -> str:
    for header, parameter in (("content-disposition", "filename"), ("content-type", "name")):
        try:
            value = part.get_param(parameter, None, header)
            if value is not None:
                return decoded(collapse_rfc2231_value(value))
        except (ValueError, LookupError):
            # A charset that does not exist, or a broken RFC 2231 value: the name is a courtesy, not a need.
            continue
    return ""


def decoded(text: object) -> str:
    """Decode RFC 2047 words; what cannot be decoded is kept with replacement marks."""
    try:
        words = decode_header(str(text))
    except (HeaderParseError, ValueError):
        return str(text)
    return "".join(_word(content, charset) for content, charset in words)


def _word(content: bytes | str, charset: str | None) -> str:
    if isinstance(content, str):
        return content
    try:
        return content.decode(charset or "ascii", "replace")
    except LookupError:
        return content.decode("latin-1")


def safe_name(name: str, *, fallback: str) -> str:
    """Reduce a name from a mail to one safe file name.

    No folders, no control or format characters, no leading dots or dashes, at most `NAME_CHARACTERS_MAX` long.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    printable = "".join(character for character in last if unicodedata.category(character)[0] != "C")
    bare = printable.strip().lstrip(".-").strip()
    if len(bare) > NAME_CHARACTERS_MAX:
        suffix = Path(bare).suffix[:10]
        bare = bare[: NAME_CHARACTERS_MAX - len(suffix)] + suffix
    return bare or fallback


def _free_name(name: str, taken: set[str]) -> str:
    path, count = Path(name), 1
    while name in taken:
        count += 1
        name = f"{path.stem}~{count}{path.suffix}"
    return name


def _unique(name: str, seen: Counter[str]) -> str:
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}#{seen[name]}"


def _mail_id(message: Message, content: bytes) -> str:
    stated = re.sub(r"\s+", "", decoded(message.get("Message-ID", "")))
    # Line ends differ between a Maildir and IMAP; the id must not.
    digest = sha256(content.replace(b"\r\n", b"\n")).hexdigest()
    return safe_name(stated.strip("<>"), fallback="") or f"sha256-{digest[:32]}"


def _sender(message: Message) -> str:
    address = parseaddr(decoded(message.get("From", "")))[1]
    return address if re.fullmatch(r"[^\s<>@]+@[^\s<>@]+", address) else ""
