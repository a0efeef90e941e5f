"""The one model call of this example: read an invoice from the text of a PDF that carries no data.

Anthropic's Messages and OpenAI's chat-completions wire formats, chosen by the environment: ANTHROPIC_API_KEY,
ANTHROPIC_BASE_URL, OPENAI_API_KEY, OPENAI_BASE_URL. What the model answers is data: it is validated strictly into
an `Invoice` or refused, and never acted upon.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from invoices.faults import RateLimited, Unexpected, retry_after_of
from invoices.model import Invoice, InvoiceFormat, InvoiceKind, Line

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
ANSWER_S_MAX = 120.0
ANSWER_TOKENS_MAX = 8_000
TEXT_CHARACTERS_MAX = 100_000
PROMPT = Path(__file__).with_name("prompts") / "extract.md"
INSTRUCTIONS = PROMPT.read_text("utf-8")
PRICES: dict[str, tuple[Decimal, Decimal]] = {"local-": (Decimal(0), Decimal(0))}
"""USD per million tokens in and out, by the beginning of a model's name; INVOICES_MODEL_PRICE="3,15" overrides."""


class ModelUnavailable(Unexpected):
    """No model answered: no key, no connection, or the provider's own trouble."""

    code = "model-unavailable"
    hint = "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, check the provider's status page, and resume."
    expected = "an answer from a model"


class BadAnswer(Unexpected):
    """The model answered, but not with an invoice."""

    code = "bad-answer"
    hint = "Read the document yourself, or try another model."
    expected = "one invoice as JSON"


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model read, and what it took; `cost` in USD, None where no price is known."""

    invoice: Invoice
    input_tokens: int
    output_tokens: int
    cost: Decimal | None


def extract_with_model(text: str, *, model: str, source: str = "") -> ModelAnswer:
    """Have `model` read the invoice in `text`, the text of the file `source`.

    Raises:
        RateLimited: the provider asks to wait.
        ModelUnavailable: no key, no connection, a status of 500 and above, or a key that is not accepted.
        BadAnswer: the answer is not one valid invoice, or the text is longer than `TEXT_CHARACTERS_MAX`.
    """
    if len(text) > TEXT_CHARACTERS_MAX:
        raise BadAnswer(where=source or model, found=f"{len(text)} characters, over {TEXT_CHARACTERS_MAX}")
    said, input_tokens, output_tokens = _wire_for(model)(model, _prompt(text))
    return ModelAnswer(
        invoice=read_answer(said, where=f"{model} on {source or 'the text'}", source=source),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost=cost_of(model, input_tokens, output_tokens),
    )


def cost_of(model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Give the price of a call in USD; None for a model whose price is not known."""
    named = os.environ.get("INVOICES_MODEL_PRICE")
    if named:
        price_in, price_out = (Decimal(part) for part in named.split(","))
    else:
        known = next((price for start, price in PRICES.items() if model.startswith(start)), None)
        if known is None:
            return None
        price_in, price_out = known
    return (price_in * input_tokens + price_out * output_tokens) / 1_000_000


def _prompt(text: str) -> str:
    # The document must not be able to end its own marks.
    return f"<document>\n{text.replace('</document', '< /document')}\n</document>"


# the two wire formats


Said = tuple[str, int, int]
"""A model's answer, and its tokens in and out."""


def _ask_anthropic(model: str, prompt: str) -> Said:
    """Ask in Anthropic's Messages format, version 2023-06-01."""
    url = os.environ.get("ANTHROPIC_BASE_URL", ANTHROPIC_URL).rstrip("/") + "/v1/messages"
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    messages = [{"role": "user", "content": prompt}]
    body = {"model": model, "max_tokens": ANSWER_TOKENS_MAX, "system": INSTRUCTIONS, "messages": messages}
    answer = _post(url, headers, body)
    try:
        text = "".join(part["text"] for part in answer["content"] if part["type"] == "text")
        return text, int(answer["usage"]["input_tokens"]), int(answer["usage"]["output_tokens"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadAnswer(where=url, found=f"an answer without {error}") from error


def _ask_openai(model: str, prompt: str) -> Said:
    """Ask in OpenAI's chat-completions format, which many other providers speak too."""
    url = os.environ.get("OPENAI_BASE_URL", OPENAI_URL).rstrip("/") + "/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    answer = _post(url, headers, {"model": model, "messages": messages})
    try:
        text = str(answer["choices"][0]["message"]["content"])
        return text, int(answer["usage"]["prompt_tokens"]), int(answer["usage"]["completion_tokens"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise BadAnswer(where=url, found=f"an answer without {error}") from error


def _wire_for(model: str) -> Callable[[str, str], Said]:
    anthropic, openai = os.environ.get("ANTHROPIC_API_KEY"), os.environ.get("OPENAI_API_KEY")
    if not anthropic and not openai:
        raise ModelUnavailable(where=model, found="neither ANTHROPIC_API_KEY nor OPENAI_API_KEY set")
    if openai and (not anthropic or model.startswith(("gpt-", "o1", "o3", "o4"))):
        return _ask_openai
    return _ask_anthropic


def _post(url: str, headers: Mapping[str, str], body: Mapping[str, object]) -> dict[str, Any]:
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    try:
        # A proxy named in the environment is not meant for a service on this machine.
        with httpx2.Client(timeout=ANSWER_S_MAX, trust_env=not local, verify=not local) as client:
            answer = client.post(url, headers=headers, json=dict(body))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ModelUnavailable(where=url, found=str(error) or type(error).__name__) from error
    return _document_of(answer, url)


def _document_of(answer: httpx2.Response, url: str) -> dict[str, Any]:
    if answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
        raise RateLimited(where=url, retry_after=retry_after_of(answer.headers.get("Retry-After")))
    if answer.is_server_error or answer.status_code in (401, 403):
        raise ModelUnavailable(where=url, found=f"status {answer.status_code}: {answer.text[:300]}")
    try:
        document = answer.json()
    except ValueError as error:
        raise BadAnswer(where=url, found=f"no JSON: {answer.text[:300]!r}") from error
    if not answer.is_success or not isinstance(document, dict):
        raise BadAnswer(where=url, found=f"status {answer.status_code}: {answer.text[:300]}")
    return document


# what counts as an invoice

Short = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=1_000)]
Amount = Annotated[Decimal, Field(max_digits=18, decimal_places=6, allow_inf_nan=False)]


class _AnsweredLine(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    number: Short
    item: Short
    description: Text
    quantity: Amount
    unit: Short
    unit_price: Amount
    net: Amount


class _AnsweredInvoice(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    number: Short
    kind: InvoiceKind
    supplier: Short
    supplier_id: Text
    issued: date
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    order_ref: Short | None = None
    lines: Annotated[list[_AnsweredLine], Field(min_length=1, max_length=1_000)]
    net_total: Amount
    tax_total: Amount
    gross_total: Amount
    payable: Amount


def read_answer(said: str, *, where: str, source: str) -> Invoice:
    """Validate a model's answer into an invoice; a code fence around the JSON is tolerated, nothing else is.

    Raises:
        BadAnswer: no JSON, a missing or unknown member, or a value that does not fit.
    """
    bare = said.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        read = _AnsweredInvoice.model_validate_json(bare)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise BadAnswer(where=where, found=f"{path}: {first['msg']}") from error
    lines = tuple(Line(**line.model_dump()) for line in read.lines)
    fields = read.model_dump(exclude={"lines"})
    return Invoice(**fields, lines=lines, source=source, format=InvoiceFormat.MODEL)
