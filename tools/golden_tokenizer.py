#!/usr/bin/env python3
"""Makes tests/golden/tokenizer_corpus.json: what Hugging Face's tokenizers does with a corpus.

Owns the corpus. Needs tokenizers and transformers; the tests that read the file need neither.

    tools/fetch_gemma_tokenizer.sh build/deps/gemma-tokenizer
    tools/golden_tokenizer.py --atlas CHECKPOINT --gemma build/deps/gemma-tokenizer/tokenizer.json
    tools/golden_tokenizer.py ... --check      compares instead of writing

A case is a text, given as `unit` times `repeat`, and for each tokenizer the ids with special tokens
parsed and plain (only where they differ). Ids of long texts are given as their count and the sha256
of their little-endian u32 bytes.
"""

import argparse
import hashlib
import json
import pathlib
import random
import struct
import sys

import tokenizers
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
LONG = 400  # ids; longer lists are hashed

TEXTS = {
    "prose": "The quick brown fox jumps over 13 lazy dogs, and nobody minds. Isn't it 3.14159?",
    "code": "    for (int i = 0; i < n; ++i) {\n\t\tsum += x[i] * y[i];  // 100%\n    }\n\n\treturn sum;\r\n",
    "japanese": "日本の首都はどこですか？東京は日本の首都です。",
    "chinese": "我们今天去北京大学图书馆看书，好不好？",
    "korean": "대한민국의 수도는 서울입니다.",
    "arabic": "ما هي عاصمة فرنسا؟ 123 العربية",
    "hindi": "भारत की राजधानी नई दिल्ली है।",
    "thai": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย",
    "composed": "Ünïcödé naïve café Zürich Å ñ ﬁ",
    "decomposed": "U\u0308ni\u0308co\u0308de\u0301 nai\u0308ve cafe\u0301 Zu\u0308rich A\u030A n\u0303",
    "emoji": "😀👍🏽🇫🇷 👩‍👩‍👧‍👦 ❤️‍🔥 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣",
    "astral": "𐌀𐌁𐌂 𝕳𝖊𝖑𝖑𝖔 𠀀𪜶 \U0010FFFF \U000E0001",
    "edges": "\u0000\u0001\u007f\u0080\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000",
    "spaces of all kinds": "a\u00a0b\u2003c\u3000d\u200be\ufefff\u2028g\u0085h",
    "separator": "a\u2581b \u2581\u2581c\u2581 ",
    "control": "<bos><|turn>user\nHi<turn|>\n<start_of_turn>model\nHo<end_of_turn><eos>",
    "control cut": "<bos <|turn|> <|turn <turn|>> <<bos>> <start_of_turn<end_of_turn>",
    "bytes spelled": "<0x41><0x0A> <0xE2><0x96><0x81>",
    "html": "<table><tr><td>1</td></tr></table><b><i>x</i></b> <div>[multimodal]<mask><unused12>",
    "numbers": "1234567890 -12.5e+10 0xDEADBEEF 1,000,000 ½ ² Ⅷ ١٢٣",
    "url": "https://example.com/a_b-c?d=e&f=%20g#h",
    "case": "HELLO Hello hello hELLO ΣΊΣΥΦΟΣ straße İstanbul",
    "zalgo": "Z\u0351\u036b\u0343a\u0334\u0321l\u0335\u034dg\u0336\u031bo\u0337\u033d",
    "empty": "",
}
LONG_UNITS = {
    "a": "a", "space": " ", "newline": "\n", "tab": "\t", "separator": "\u2581", "the": "the",
    "alphabet": "abcdefghijklmnopqrstuvwxyz", "open": "<unused", "cjk": "日本の首都は東京です",
    "zwj": "👩‍👩‍👧‍👦", "prose": TEXTS["prose"] + " ", "code": TEXTS["code"], "mixed": "a\n \t\u0301日😀",
}
CHATS = {
    "one turn": [("user", "What is the capital of France?")],
    "system": [("system", "Be brief."), ("user", "Hello there")],
    "three turns": [("user", "What is the capital of Spain?"),
                    ("assistant", "The capital of Spain is Madrid."), ("user", "  And of Italy? ")],
    "model role": [("user", "Hi"), ("model", "Ho"), ("user", "Hi again")],
    "trimmed": [("user", "\u3000\u00a0\x1c\x85 \n\tx  y\n \u2003\u2028\x0b")],
    "not trimmed": [("user", "\u200b\ufeff x \u2060")],
    "empty": [("user", ""), ("assistant", " \n "), ("user", "\n")],
    "lines": [("user", "\n\nOne\n\n\nTwo\n")],
    "unicode": [("user", "日本の首都は？ 😀 e\u0301")],
}
ANSWERS = ["The capital of Spain is Madrid.", "東京です。", "One\n\nTwo"]


def random_texts(count):
    """Texts of pieces that meet in ways that no one writes."""
    generator = random.Random(20261130)
    pieces = list(" \t\n\r<>|aeiotnshrd.,'0123456789▁é日本語のعह😀\u0301\u200d\ufe0f\u00a0") + [
        "  ", "\n\n", "the", "ing", " the", "<bos>", "<|turn>", "turn|>", "<end_of_turn>", "▁▁", "<0x0A>",
        "\U00010300", "The", "tion", " of", "    ", "<table>", "<unused", "99>"]
    return ["".join(generator.choices(pieces, k=generator.randint(1, 60))) for _ in range(count)]


def corpus():
    for name, text in TEXTS.items():
        yield name, text, 1
    for length in range(1, 33):
        for name, unit in (("spaces", " "), ("tabs", "\t"), ("newlines", "\n")):
            yield f"{length} {name}", f"a{unit * length}b", 1
    for number, text in enumerate(random_texts(60)):
        yield f"random {number}", text, 1
    for name, unit in LONG_UNITS.items():
        yield f"long {name}", unit, 100_000 // len(unit.encode())


def compact(ids):
    if len(ids) <= LONG:
        return ids
    return {"count": len(ids), "sha256": hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()}


def encode(tokenizer, text, parse_special):
    tokenizer.encode_special_tokens = not parse_special
    return tokenizer.encode(text, add_special_tokens=False).ids


def encoded(tokenizer, text):
    parsed, plain = (encode(tokenizer, text, parse) for parse in (True, False))
    decoded = tokenizer.decode(parsed, skip_special_tokens=False)
    assert decoded == text.replace("\u2581", " "), text
    result = {"parsed": compact(parsed)}
    if plain != parsed:
        result["plain"] = compact(plain)
    return result


def decode_cases(tokenizer):
    """Ids of text and of whole characters in byte tokens, and of single bytes that are none."""
    generator = random.Random(7)
    bytes_of = {byte: tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)}
    words = [i for i in range(300, 3000) if not tokenizer.id_to_token(i).startswith("<")]
    for _ in range(20):
        ids = []
        for _ in range(generator.randint(1, 12)):
            ids.append(generator.choice(words))
            kind = generator.randint(0, 3)
            if kind == 0:
                ids += [bytes_of[b] for b in generator.choice("é▁日😀𐌀\n ").encode()]
            elif kind == 1:
                ids.append(bytes_of[generator.choice((0x80, 0xBF, 0xC0, 0xF5, 0xFF))])
        ids.append(generator.choice(words))
        yield {"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False)}


def chats(checkpoint):
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    render = lambda messages, prompt: tokenizer.apply_chat_template(
        messages, add_generation_prompt=prompt, tokenize=True, return_dict=False)
    for name, turns in CHATS.items():
        messages = [{"role": role, "content": content} for role, content in turns]
        yield {"name": name, "messages": messages, "ids": list(render(messages, True))}
    for answer in ANSWERS:
        messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": answer},
                    {"role": "user", "content": "And then?"}]
        yield {"name": f"answer {answer}", "messages": messages, "ids": list(render(messages, True))}


def make(arguments):
    paths = {"atlas": arguments.atlas / "tokenizer.json", "gemma": arguments.gemma}
    models = {name: tokenizers.Tokenizer.from_file(str(path)) for name, path in paths.items()}
    cases = [{"name": name, "unit": unit, "repeat": repeat,
              **{model: encoded(tokenizer, unit * repeat) for model, tokenizer in models.items()}}
             for name, unit, repeat in corpus()]
    return {
        "tokenizers": tokenizers.__version__,
        "transformers": transformers.__version__,
        "sha256": {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()},
        "cases": cases,
        "decode": {name: list(decode_cases(tokenizer)) for name, tokenizer in models.items()},
        "chat": list(chats(arguments.atlas)),
    }


def written(golden):
    """JSON with one case per line."""
    line = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    lines = lambda values: "[\n" + ",\n".join(map(line, values)) + "\n]"
    parts = {key: lines(value) if isinstance(value, list) else line(value)
             for key, value in golden.items()}
    return "{\n" + ",\n".join(f"{line(key)}: {part}" for key, part in parts.items()) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atlas", type=pathlib.Path, required=True, help="the checkpoint's folder")
    parser.add_argument("--gemma", type=pathlib.Path, required=True, help="its tokenizer.json")
    parser.add_argument("--check", action="store_true", help="compare with the file that is there")
    arguments = parser.parse_args()
    golden = make(arguments)
    path = GOLDEN / "tokenizer_corpus.json"
    if not arguments.check:
        path.write_text(written(golden), encoding="utf-8")
        return 0
    known = json.loads(path.read_text(encoding="utf-8"))
    differing = [key for key in golden if golden[key] != known.get(key)]
    print(f"{path.name}: differs in {', '.join(differing)}" if differing else f"{path.name}: the same")
    return 1 if set(differing) - {"tokenizers", "transformers"} else 0


if __name__ == "__main__":
    sys.exit(main())
