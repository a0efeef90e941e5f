"""Who may come in, and under which name an answer is recorded: tokens, a proxy's word, an account of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from html import unescape
from pathlib import Path
from threading import Barrier

import httpx2 as httpx
import pytest
from page_parts import Parts
from running import Console, a_console, form_key, question_of, send_answer

from milepost.config import ConsoleConfig
from milepost.console.peer import OwnAccount, account_of, is_own_account
from milepost.console.server import is_loopback, prepare, read_tokens
from milepost.errors import BadConfig, ConsoleRefused
from milepost.records.identity import Identity
from milepost.stores.memory import MemoryStore

ANA, BEN, CLEO = "token-of-ana-0123456789", "token-of-ben-0123456789", "token-of-cleo-0123456789"
SECRET = "a-secret-of-the-proxy-0123456789"


def digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


@pytest.fixture(scope="module")
def named(filled: Path) -> Iterator[Console]:
    """Return a console for people with tokens, over the same store."""
    tokens = filled.parent / "tokens.toml"
    ana = f'"ana@example" = {{ sha256 = "{digest(ANA)}", groups = ["finance"] }}'
    tokens.write_text(f'{ana}\n"ben@example" = "{digest(BEN)}"\n"cleo@example" = "{digest(CLEO)}"\n')
    tokens.chmod(0o600)
    with a_console(filled, config='[console]\ntokens_file = "tokens.toml"\n') as running:
        yield running


@pytest.fixture(scope="module")
def proxied(filled: Path) -> Iterator[Console]:
    """Return a console behind a proxy that proves itself by a secret."""
    config = '[console]\nidentity_header = "X-Remote-User"\nproxy_secret_env = "PROXY_SECRET"\n'
    config += 'allowed_hosts = ["console.example"]\n'
    with a_console(filled, config=config, PROXY_SECRET=SECRET) as running:
        yield running


def signed_in(console: Console, token: str) -> httpx.Client:
    """Return somebody who signed in with a token."""
    client = console.browser()
    answer = client.post("/signin", data={"token": token, "to": "/runs"}, headers={"origin": console.url})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs"
    return client


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_token_names_who_holds_it(named: Console) -> None:
    """Two people, two names in the record, whatever their forms say."""
    with closing(signed_in(named, ANA)) as ana:
        assert "ana@example" in ana.get("/inbox").text
        question = question_of(ana, "asks-5")
        assert send_answer(ana, question=question, choice="not-applied", by="ben@example").status_code == 303
        assert ana.get("/question.json", params={"id": question}).json()["answer"]["by"] == "ana@example"


@pytest.mark.parametrize("token", ["", "wrong", digest(ANA), "é", ANA + "x"])
def test_a_wrong_token_lets_nobody_in(named: Console, token: str) -> None:
    """What the file holds, the digest, is no token."""
    with named.browser() as stranger:
        assert stranger.post("/signin", data={"token": token}, headers={"origin": named.url}).status_code == 401
        assert stranger.get("/inbox").status_code == 401


def test_a_foreign_page_cannot_sign_somebody_in(named: Console) -> None:
    """Else its visitors would answer under the name of whoever made that page."""
    with named.browser() as stranger:
        answer = stranger.post("/signin", data={"token": ANA}, headers={"origin": "http://evil.example"})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "evil"]
)
def test_signing_in_leads_to_this_console_only(named: Console, to: str) -> None:
    """No open redirect."""
    with named.browser() as client:
        answer = client.post("/signin", data={"token": ANA, "to": to}, headers={"origin": named.url})
        assert answer.headers["location"] == "/"


def test_a_program_reads_with_its_token_and_answers_nothing(named: Console) -> None:
    """The twins are for programs; answers of programs go through the command line or the library."""
    bearer = {"authorization": f"Bearer {BEN}"}
    with named.browser() as program:
        assert program.get("/runs.json", headers=bearer).status_code == 200
        assert program.get("/runs.json", headers={"authorization": "Bearer wrong"}).status_code == 401
        fields = {"form_key": "", "question": "q", "choice": "stop"}
        assert program.post("/answer", data=fields, headers={**bearer, "origin": named.url}).status_code == 403


def test_a_form_key_of_one_visitor_is_not_anothers(named: Console) -> None:
    with closing(signed_in(named, ANA)) as ana, closing(signed_in(named, BEN)) as ben:
        fields = {"form_key": form_key(ana), "question": "q", "choice": "stop"}
        assert ben.post("/answer", data=fields, headers={"origin": named.url}).status_code == 403


def test_two_people_answer_at_once_and_one_answer_stands(named: Console) -> None:
    """The other is told who decided; theirs is kept beside it."""
    with closing(signed_in(named, ANA)) as ana, closing(signed_in(named, BEN)) as ben:
        question = question_of(ana, "asks-4")
        keys = {ana: form_key(ana), ben: form_key(ben)}
        together = Barrier(2)

        def answer(client: httpx.Client, choice: str) -> httpx.Response:
            fields = {"form_key": keys[client], "question": question, "choice": choice}
            together.wait()
            return client.post("/answer", data=fields, headers={"origin": named.url})

        with ThreadPoolExecutor(2) as pool:
            given = list(pool.map(answer, (ana, ben), ("not-applied", "stop")))
        assert sorted(one.status_code for one in given) == [303, 409]
        told = ana.get("/question.json", params={"id": question}).json()
        late = next(one for one in given if one.status_code == 409)
        assert told["answer"]["by"] in late.text
        assert [one["by"] for one in told["later"]] == [({"ana@example", "ben@example"} - {told["answer"]["by"]}).pop()]


# ── approvals ───────────────────────────────────────────────────────────────────────────────────────


def test_two_must_approve_and_only_those_who_may(named: Console) -> None:
    """Ana is in finance, Ben is named, Cleo is neither; nobody approves twice. The page says who has and who must."""
    with (
        closing(signed_in(named, ANA)) as ana,
        closing(signed_in(named, BEN)) as ben,
        closing(signed_in(named, CLEO)) as cleo,
    ):
        question = question_of(ana, "pays-1")
        refused = send_answer(cleo, question=question, choice="approve")
        assert refused.status_code == 409
        assert "finance, ben@example may answer, cleo@example may not" in unescape(refused.text)
        assert send_answer(ana, question=question, choice="approve").status_code == 303
        again = send_answer(ana, question=question, choice="approve")
        assert again.status_code == 409
        assert "somebody else must answer as well" in again.text
        told = ben.get("/question.json", params={"id": question}).json()
        assert told["answer"] is None
        assert [(one["by"], one["role"]) for one in told["approval"]["given"]] == [("ana@example", "finance")]
        assert "1 of 2 approvals" in ben.get("/question", params={"id": question}).text
        for path in ({"/question": {"id": question}, "/inbox": {"run": "pays-1"}}).items():
            assert buttons(ben, *path) == {"approve", "decline"} | ({"edit"} if path[0] == "/question" else set())
            assert buttons(ana, *path) == buttons(cleo, *path) == set()
            assert "You answered approve" in ana.get(path[0], params=path[1]).text
            assert "finance, ben@example may answer" in cleo.get(path[0], params=path[1]).text
        assert send_answer(ben, question=question, choice="approve").status_code == 303
        assert ben.get("/question.json", params={"id": question}).json()["answer"]["choice"] == "approve"
        assert send_answer(ana, question=question, choice="decline").status_code == 409


def test_a_decline_is_no_approval(named: Console) -> None:
    """Ana approved, Ben declined: one of two approved, and nobody is said to have done what the other did."""
    with closing(signed_in(named, ANA)) as ana, closing(signed_in(named, BEN)) as ben:
        question = question_of(ana, "pays-4")
        assert send_answer(ana, question=question, choice="approve").status_code == 303
        assert send_answer(ben, question=question, choice="decline").status_code == 303
        page = Parts(ana.get("/question", params={"id": question}).text).text
        assert "1 of 2 approvals" in page
        assert "Decline by ben@example" in page
        assert "Approve by ana@example" in page
        table = Parts(ana.get("/run", params={"id": "pays-4"}).text).text
        assert "declined by ana@example" not in table


def buttons(client: httpx.Client, path: str, values: dict[str, str]) -> set[str]:
    """Return the choices that a page offers to somebody."""
    tags = Parts(client.get(path, params=values).text).tags
    return {given["value"] for tag, given in tags if tag == "button" and given.get("name") == "choice"}


def test_an_edit_is_checked_against_the_effects_own_types(named: Console) -> None:
    """What does not fit is refused here and now and not recorded; an unchanged request goes with another choice."""
    with closing(signed_in(named, ANA)) as ana:
        question = question_of(ana, "pays-2")
        page = ana.get("/question", params={"id": question}).text
        assert '"amount": 7' in unescape(page)
        wrong = send_answer(ana, question=question, choice="edit", request='{"amount": "many", "to": "Ana"}')
        assert wrong.status_code == 409
        assert "expected int" in unescape(wrong.text)
        assert ana.get("/question.json", params={"id": question}).json()["approval"]["given"] == []
        fitting = {"choice": "edit", "request": '{"amount": 6, "to": "Ana"}'}
        assert send_answer(ana, question=question, **fitting).status_code == 303
        told = ana.get("/question.json", params={"id": question}).json()
        assert [one["choice"] for one in told["approval"]["given"]] == ["edit"]


def test_items_of_a_map_are_answered_together(named: Console) -> None:
    """All but one at once; what each got stands in its own record."""
    with closing(signed_in(named, ANA)) as ana:
        found = ana.get("/inbox.json", params={"run": "reminds"}).json()
        assert [(batch["name"], batch["count"], batch["choices"]) for batch in found["batches"]] == [
            ("mail", 4, ["approve", "decline"])
        ]
        ids = [question["question_id"] for question in found["batches"][0]["questions"]]
        fields = {"form_key": form_key(ana), "question": ids[:3], "choice": "approve", "note": "seen"}
        answer = ana.post("/answer", data=fields, headers={"origin": named.url})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/inbox"
        left = ana.get("/inbox.json", params={"run": "reminds"}).json()["questions"]
        assert [question["question_id"] for question in left] == ids[3:]
        again = ana.post("/answer", data={**fields, "question": ids}, headers={"origin": named.url})
        assert again.status_code == 409
        assert "1 answer recorded, 3 refused" in again.text


def test_a_console_that_a_run_started_takes_no_answers(filled: Path) -> None:
    """SEC-10. An agent cannot open a door of its own and walk through it; it may look."""
    with a_console(filled, MILEPOST_RUN="1 pays-1") as running, closing(running.visitor()) as agent:
        question = question_of(agent, "pays-3")
        answer = send_answer(agent, question=question, choice="approve")
        assert answer.status_code == 409
        assert "this process was started by run pays-1" in answer.text


# ── a proxy ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_name_in_a_header_counts_only_with_the_proxys_secret(proxied: Console) -> None:
    """Whoever reaches the port directly can send any header but the secret."""
    name = {"x-remote-user": "cleo@example"}
    with proxied.browser() as client:
        for headers in ({}, name, {**name, "x-milepost-proxy-secret": "wrong"}, {"x-milepost-proxy-secret": SECRET}):
            assert client.get("/inbox", headers=headers).status_code == 401
        proven = {**name, "x-milepost-proxy-secret": SECRET, "host": "console.example"}
        answer = client.get("/inbox", headers=proven)
        assert answer.status_code == 200
        assert "cleo@example" in answer.text
        assert "Sign out" not in answer.text


def test_behind_a_proxy_a_form_still_needs_its_key_and_origin(proxied: Console) -> None:
    """The proxy adds its headers to a foreign page's form as well."""
    proven = {"x-remote-user": "cleo@example", "x-milepost-proxy-secret": SECRET, "host": "console.example"}
    with proxied.browser(headers=proven) as client:
        fields = {"question": "q-none", "choice": "stop", "form_key": form_key(client)}
        foreign = {"origin": "https://evil.example"}
        own = {"origin": "https://console.example"}
        assert client.post("/answer", data=fields, headers=foreign).status_code == 403
        assert client.post("/answer", data={**fields, "form_key": ""}, headers=own).status_code == 403
        assert client.post("/answer", data=fields, headers=own).status_code == 409
        other = {"x-remote-user": "dan@example"}
        assert client.post("/answer", data=fields, headers={**own, **other}).status_code == 403


# ── starting ────────────────────────────────────────────────────────────────────────────────────────


def _prepare(tmp_path: Path, **config: object) -> None:
    owner = Identity("me@here", door="console")
    serving = prepare(MemoryStore, ConsoleConfig(**{"port": 0, **config}), owner=owner, folder=tmp_path, environ={})  # type: ignore[arg-type]
    serving.listening.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_it_does_not_listen_for_others_unless_they_must_prove_who_they_are(tmp_path: Path, host: str) -> None:
    """SEC-6. No switch turns this off."""
    with pytest.raises(ConsoleRefused, match="nothing would prove"):
        _prepare(tmp_path, host=host)


def test_a_header_that_anybody_could_set_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConsoleRefused, match="neither proxy_secret_env nor trusted_proxies"):
        _prepare(tmp_path, identity_header="X-User")
    with pytest.raises(ConsoleRefused, match="every account of this machine"):
        _prepare(tmp_path, identity_header="X-User", trusted_proxies=("127.0.0.1",))
    with pytest.raises(ConsoleRefused, match="at least 16 characters"):
        _prepare(tmp_path, identity_header="X-User", proxy_secret_env="NOT_SET")


def test_the_command_says_why_it_does_not_listen(filled: Path) -> None:
    """Refused is exit status 3, with what to do, and no traceback."""
    environ = {**os.environ, "MILEPOST_STORE": str(filled)}
    command = [sys.executable, "-m", "milepost", "ui", "--host", "0.0.0.0", "--port", "0"]
    done = subprocess.run(command, cwd=filled.parent, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("console-refused: ")
    assert "tokens_file" in done.stderr


def test_without_the_extra_the_command_names_it(tmp_path: Path) -> None:
    """An installation without the console says how to get it, before it looks for a store."""
    program = "import sys; sys.modules['uvicorn'] = None; from milepost.cli.main import main; main(['ui'])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "`milepost ui` needs uvicorn" in done.stderr
    assert "pip install 'milepost[console]'" in done.stderr


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConsoleRefused, match="it cannot listen there"):
        _prepare(tmp_path, port=taken.getsockname()[1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('ana = "short"', "64 hexadecimal"),
        (f'ana = "{"A" * 64}"', "64 hexadecimal"),
        (f'ana = {{ sha256 = "{"a" * 64}", groups = "finance" }}', "a list of texts"),
        ("ana = [", "readable TOML"),
        ("# nobody yet\n", "at least one person's token"),
        ("ana = 3", "64 hexadecimal"),
    ],
)
def test_a_tokens_file_is_read_strictly(tmp_path: Path, text: str, said: str) -> None:
    """A line that is not understood could be somebody who should not come in."""
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(BadConfig, match=said):
        read_tokens(file)


def test_a_tokens_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """Whoever can write it can let themselves in under any name."""
    file = tmp_path / "tokens.toml"
    file.write_text(f'ana = "{"a" * 64}"')
    file.chmod(0o666)
    with pytest.raises(BadConfig, match="others may"):
        read_tokens(file)
    file.chmod(0o600)
    assert read_tokens(file) == {"a" * 64: Identity("ana", (), "console")}


def test_a_made_token_is_one_the_file_knows(tmp_path: Path) -> None:
    """What is printed for the person and the line for the file belong together."""
    command = [sys.executable, "-m", "milepost", "ui", "--make-token", "ana@example"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    file = tmp_path / "tokens.toml"
    file.write_text(done.stderr.splitlines()[-1])
    file.chmod(0o600)
    assert read_tokens(file) == {digest(done.stdout.strip()): Identity("ana@example", (), "console")}


def test_the_browser_is_given_a_file_only_this_account_can_read(filled: Path, tmp_path: Path) -> None:
    """A command line is seen by every account of a machine, and a token on it with it."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nfile="${{1#file://}}"\nstat -c %a "$file" > {seen}\necho "$1" >> {seen}\ncat "$file" >> {seen}\n'
    )
    browser.chmod(0o700)
    with a_console(filled, "--open", BROWSER=str(browser)) as running:
        token = running.token
        running.visitor().close()
    mode, given, *page = seen.read_text().splitlines()
    assert mode == "600"
    assert given.startswith("file://")
    assert token not in given
    assert f"url=http://127.0.0.1:{running.port}/?token={token}" in "".join(page)
    assert not Path(given.removeprefix("file://")).exists()


def test_only_names_of_this_machine_are_loopback() -> None:
    assert [host for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost") if not is_loopback(host)] == []
    assert [host for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "") if is_loopback(host)] == []


def test_the_account_at_the_other_end_of_a_connection_is_known() -> None:
    """Another account of this machine that got hold of a token is refused all the same."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            own = client.getsockname()
            if account_of(own, address) is None:
                pytest.skip("this system does not tell the account of a connection")
            assert account_of(own, address) == os.geteuid()
            assert is_own_account(own, address)
            assert OwnAccount().is_at(own, address, 0.0)
            assert account_of(("127.0.0.1", own[1]), ("127.0.0.1", address[1] ^ 1)) is None
            assert account_of(("192.0.2.1", own[1]), address) is None
