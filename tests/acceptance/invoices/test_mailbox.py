"""Mail from strangers gives attachments or named reasons, never an exception; a real IMAP server gives the same."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invoices import mailbox
from invoices.faults import NotReached, TurnedDown
from invoices.imap import collect_imap
from invoices.mailbox import Attachment, RawMail, Skipped, SkippedCode, collect, collect_mails, safe_name
from invoices.settings import Settings
from invoices.world.smtp import SentFolder

XML = b"<Invoice/>"


def mail(message_id: str = "<1@a.example>", *names: str, content: bytes = XML) -> bytes:
    made = EmailMessage()
    made["From"], made["To"] = "Arden <billing@arden.example>", "invoices@northgate-parts.example"
    made["Message-ID"] = message_id
    made.set_content("Please find attached.\n")
    for name in names:
        made.add_attachment(content, maintype="application", subtype="xml", filename=name)
    return made.as_bytes()


def only(content: bytes) -> Attachment | Skipped:
    (found,) = collect_mails([RawMail("one.eml", content)])
    return found


def code_of(content: bytes) -> SkippedCode:
    found = only(content)
    assert isinstance(found, Skipped)
    assert found.reason
    return found.code


def test_folder_of_eml_files_is_read_in_order_of_name(tmp_path: Path) -> None:
    """The same folder gives the same list."""
    for number in (3, 1, 2):
        (tmp_path / f"{number}.eml").write_bytes(mail(f"<{number}@a.example>", f"{number}.xml"))
    (tmp_path / "notes.txt").write_text("not a mail")
    found = collect(tmp_path)
    assert [item.name for item in found] == ["1.xml", "2.xml", "3.xml"]
    assert found[0] == Attachment("1@a.example", "billing@arden.example", "1.xml", sha256(XML).hexdigest(), XML)


def test_maildir_keeps_its_order_when_a_mail_is_read(tmp_path: Path) -> None:
    """A mail client moves mails to `cur` and adds flags; the inputs of a run must not change by that."""
    folder = SentFolder(tmp_path)
    for number in range(3):
        folder.keep(mail(f"<{number}@a.example>", f"{number}.xml"))
    before = collect(tmp_path)
    os.rename(tmp_path / "new" / "000001.sent", tmp_path / "cur" / "000001.sent:2,S")
    assert collect(tmp_path) == before
    assert len(before) == 3


def test_missing_mailbox_is_an_error(tmp_path: Path) -> None:
    """A mailbox that is not there must not look like an empty month."""
    with pytest.raises(FileNotFoundError):
        collect(tmp_path / "gone")


def test_link_in_the_mailbox_is_not_followed(tmp_path: Path) -> None:
    """A link, a pipe or a folder among the mails is named, not opened."""
    (tmp_path / "secret").write_bytes(mail("<s@a.example>", "secret.xml"))
    (tmp_path / "link.eml").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe.eml")
    assert [item.code for item in collect(tmp_path) if isinstance(item, Skipped)] == [
        SkippedCode.UNREADABLE,
        SkippedCode.UNREADABLE,
    ]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../../etc/passwd", "passwd"),
        ("C:\\Windows\\evil.xml", "evil.xml"),
        ("..", "attachment"),
        ("-rf.xml", "rf.xml"),
        ("a\x1b[31m\r\n.xml", "a[31m.xml"),
        ("invoice\u202elmx.exe", "invoicelmx.exe"),
        ("", "attachment"),
        ("x" * 300 + ".xml", "x" * 116 + ".xml"),
    ],
)
def test_file_names_from_mail_are_made_safe(name: str, safe: str) -> None:
    """No name leaves its folder, hides its ending, or commands a terminal."""
    assert safe_name(name, fallback="attachment") == safe


def test_equal_names_and_equal_ids_stay_apart() -> None:
    """Two files of one name, two mails of one id: four attachments, four places."""
    twice = RawMail("a.eml", mail("<1@a.example>", "inv.xml", "inv.xml"))
    found = collect_mails([twice, twice])
    assert [(item.mail_id, item.name) for item in found] == [
        ("1@a.example", "inv.xml"),
        ("1@a.example", "inv~2.xml"),
        ("1@a.example#2", "inv.xml"),
        ("1@a.example#2", "inv~2.xml"),
    ]


def test_nested_multiparts_are_walked_and_bounded() -> None:
    """A forwarded mail is read; a tower of a thousand levels is named before the parser climbs it."""
    forwarded = EmailMessage()
    forwarded.set_content("See below.\n")
    inner = EmailMessage()
    inner.set_content("x")
    inner.add_attachment(XML, maintype="application", subtype="xml", filename="inner.xml")
    forwarded.add_attachment(inner)
    assert only(forwarded.as_bytes()).name == "inner.xml"
    tower = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(2_000))
    assert code_of(tower) is SkippedCode.TOO_NESTED


def test_wrong_charsets_do_not_stop_anything() -> None:
    """Charsets that do not exist, in the name, the sender and the body."""
    broken = (
        b"From: =?x-no-such?Q?M=FCller?= <m@a.example>\nMessage-ID: <1@a.example>\n"
        b"Content-Type: application/xml; charset=x-no-such; name*=x-no-such''r%E9.xml\n\n<Invoice/>"
    )
    found = only(broken)
    assert isinstance(found, Attachment)
    assert (found.sender, found.content) == ("m@a.example", XML)


def test_winmail_empty_and_missing_attachments_are_named() -> None:
    """Each asks something else of the sender."""
    assert code_of(mail("<1@a.example>", "winmail.dat")) is SkippedCode.WINMAIL
    assert code_of(mail("<1@a.example>", "a.xml", content=b"")) is SkippedCode.EMPTY_ATTACHMENT
    assert code_of(mail("<1@a.example>")) is SkippedCode.NO_ATTACHMENT
    assert code_of(b"") is SkippedCode.NO_ATTACHMENT
    assert code_of(b"Content-Type: multipart/mixed\n\nno parts") is SkippedCode.UNREADABLE


def test_huge_mail_and_huge_attachment_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is asked of the file's size, so that nothing huge is read to learn that it is."""
    with open(tmp_path / "huge.eml", "wb") as file:
        file.truncate(mailbox.MAIL_BYTES_MAX + 1)
    (found,) = collect(tmp_path)
    assert isinstance(found, Skipped)
    assert found.code is SkippedCode.TOO_LARGE
    monkeypatch.setattr(mailbox, "ATTACHMENT_BYTES_MAX", 5)
    assert code_of(mail("<1@a.example>", "a.xml")) is SkippedCode.TOO_LARGE


def test_too_many_parts_are_bounded() -> None:
    """The first ones are given, the rest is named."""
    found = collect_mails([RawMail("a", mail("<1@a.example>", *(f"{n}.xml" for n in range(300))))])
    assert isinstance(found[-1], Skipped)
    assert found[-1].code is SkippedCode.TOO_NESTED
    assert len(found) < mailbox.PARTS_MAX


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                b"From",
                b"Message-ID",
                b"Content-Type",
                b"Content-Disposition",
                b"Content-Transfer-Encoding",
                b"X",
            ]
        ),
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [
                    b"multipart/mixed; boundary=b",
                    b"message/rfc822",
                    b"base64",
                    b"x-uuencode",
                    b"quoted-printable",
                    b"attachment; filename*0*=utf-8''%ff; filename*1=b",
                    b"=?utf-8?B?////?=",
                    b"application/xml; name==?utf-7?Q?+?=",
                    b"message/external-body; access-type=x",
                ]
            ),
        ),
    ),
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(HEADERS, st.binary(max_size=200))
def test_no_bytes_stop_the_mailbox(headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """Whatever arrives, something with a safe name comes out."""
    content = b"".join(b"%s: %s\n" % header for header in headers) + b"\n--b\n" + body
    for found in collect_mails([RawMail("a.eml", content)]):
        assert "/" not in found.name
        assert found.mail_id


# a real IMAP server


@dataclass(frozen=True)
class Dovecot:
    port: int
    maildir: Path


CONFIG = """\
base_dir = {home}/run
log_path = {home}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:{home}/Maildir
first_valid_uid = {uid}
last_valid_uid = {uid}
first_valid_gid = {gid}
default_internal_user = {internal}
default_login_user = {login}
default_internal_group = {internal_group}
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={home}/user
}}
service imap-login {{
  {chroot}
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  {chroot}
}}
service stats {{
  {chroot}
}}
"""


def dovecot_config(home: Path, port: int) -> str:
    """As root Dovecot insists on a mail user that is not root; as anybody else it can only be that user."""
    if os.geteuid() == 0:
        ids = {"uid": 65534, "gid": 65534, "chroot": ""}
        users = {"internal": "dovecot", "login": "dovenull", "internal_group": "dovecot"}
    else:
        import grp
        import pwd

        me, mine = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
        ids = {"uid": os.geteuid(), "gid": os.getegid(), "chroot": "chroot ="}
        users = {"internal": me, "login": me, "internal_group": mine}
    return CONFIG.format(home=home, port=port, **ids, **users)


def dovecot_command() -> str:
    found = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip("no Dovecot here: `apt-get install dovecot-imapd` brings the IMAP server this test reads from")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if not version.startswith("2.3."):
        pytest.skip(f"the test's configuration is for Dovecot 2.3, found {version.strip()}")
    return found


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    command = dovecot_command()
    # Not under pytest's folder: that is closed to the user whom Dovecot becomes.
    with tempfile.TemporaryDirectory(prefix="dovecot-") as folder, socket.socket() as free:
        home = Path(folder)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        home.chmod(0o755)
        (home / "user").mkdir()
        maildir = home / "Maildir"
        folder_of_mails = SentFolder(maildir)
        for number in range(3):
            folder_of_mails.keep(mail(f"<{number}@a.example>", f"{number}.xml"))
        folder_of_mails.keep(mail("<none@a.example>"))
        if os.geteuid() == 0:
            for path in (home / "user", maildir, *maildir.rglob("*")):
                os.chown(path, 65534, 65534)
        config = home / "dovecot.conf"
        config.write_text(dovecot_config(home, port))
        # Without -F it returns once its ports are open.
        subprocess.run([command, "-c", str(config)], check=True, timeout=60)
        try:
            yield Dovecot(port, maildir)
        finally:
            subprocess.run([command, "-c", str(config), "stop"], check=True, timeout=60)


def test_imap_gives_the_same_as_the_maildir(dovecot: Dovecot) -> None:
    """One real server: the same attachments, the same ids, the same order, nothing marked as read."""
    found = collect_imap("127.0.0.1", dovecot.port, "anna", "secret", tls=False)
    again = collect_imap("127.0.0.1", dovecot.port, "anna", "secret", tls=False)
    there = collect(dovecot.maildir)
    assert [item for item in found if isinstance(item, Attachment)] == there[:3]
    assert [(item.mail_id, type(item)) for item in found] == [(item.mail_id, type(item)) for item in there]
    assert again == found
    assert not list(dovecot.maildir.rglob("*:2,*S*"))


def test_task_reads_imap_when_it_is_configured(dovecot: Dovecot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task's own settings lead to the same mails; the password is in no setting and no record."""
    monkeypatch.setenv("INVOICES_IMAP_PASSWORD", "secret")
    configured = Settings.read({"INVOICES_IMAP": f"imap://anna@127.0.0.1:{dovecot.port}/INBOX"})
    found = collect_imap("127.0.0.1", dovecot.port, "anna", "secret", tls=False)
    assert configured.collect(Path("not read")) == found != []
    assert "secret" not in repr(configured)


def test_imap_refusals_are_named(dovecot: Dovecot) -> None:
    """A wrong password, a wrong folder and a wrong port ask for different things."""
    with pytest.raises(TurnedDown):
        collect_imap("127.0.0.1", dovecot.port, "anna", "wrong", tls=False)
    with pytest.raises(TurnedDown, match="No Such"):
        collect_imap("127.0.0.1", dovecot.port, "anna", "secret", "No Such", tls=False)
    with pytest.raises(NotReached):
        collect_imap("127.0.0.1", 1, "anna", "secret", tls=False)
