"""python3 docs/read_artifact.py ARTIFACT [ATTACHED]: checks every byte as docs/artifact.md says, and lists the tensors."""
import hashlib, json, pathlib, struct, sys
PIECE = 4 << 20
PLANES = {  # of a type: name, dtype, and the shape for r rows and c columns
    "q4_0": [("quants", "U8", lambda r, c: [r, c // 2]), ("scales", "F16", lambda r, c: [r, c // 32])],
    "q8_0": [("quants", "U8", lambda r, c: [r, c]), ("scales", "F16", lambda r, c: [r, c // 32])],
    **{dtype.lower(): [("values", dtype, lambda r, c: [r, c])] for dtype in ("F16", "F32", "U32")}}

def check(right, what): right or sys.exit(ascii(f"{what}: not as docs/artifact.md says")[1:-1])
def sha256(data): return hashlib.sha256(data).hexdigest()
def text(value): return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
def bound(name, data): return {"file": name, "bytes": len(data), "sha256": sha256(data)}
def read(path): check(path.is_file() and not path.is_symlink(), f"{path}: a regular file"); return path.read_bytes()
def read_json(path, schema):
    value = json.loads(data := read(path))
    check(text(value) == data and (value["schema"], value["schema_version"]) == (schema, 4), path)
    return value
def read_shard(path, shard, planes):
    data, hashes = read(path), shard["pieces"]
    check(len(data) == shard["bytes"] and len(hashes) == -(-len(data) // PIECE), path)
    for i, piece in enumerate(hashes): check(sha256(data[i * PIECE:(i + 1) * PIECE]) == piece, f"{path}: piece {i}")
    check(sha256(b"".join(map(bytes.fromhex, hashes))) == shard["digest"], f"{path}: digest")
    start = end = 8 + struct.unpack("<Q", data[:8])[0]
    for name, entry in sorted(json.loads(data[8:start]).items(), key=lambda e: e[1]["data_offsets"]):  # tile the data
        begin, end, last = *(start + offset for offset in entry["data_offsets"]), end
        known = planes.pop(name, None) == (begin, entry["dtype"], entry["shape"])
        fits = known or name.startswith("padding.") and not any(data[begin:end])
        check(fits and begin == last, f"{path}: {name}")
    check(end == len(data) and not planes, path)
def read_folder(folder):
    receipt = read_json(folder / "receipt.json", "tandem.receipt")
    manifest = read_json(folder / "manifest.json", "tandem.artifact")
    whole, mtp = not manifest["attached_to"], manifest["views"].get("mtp", {})
    own = [s for s in manifest["shards"] if whole or s["role"] == "assistant"]
    texts = [manifest[k] for k in ("tokenizer", "chat_template", "generation_config") if whole and manifest[k]]
    files = sorted(texts + [bound("manifest.json", text(manifest))], key=lambda file: file["file"])
    found = receipt | {part: receipt[part] and sha256(text(receipt[part])) for part in ("target", "assistant")}
    for key, right in {"digest": sha256(text({k: v for k, v in receipt.items() if k != "digest"})),
                       "recipe": manifest["recipe"], "files": files,
                       "shards": [{k: s[k] for k in ("file", "bytes", "digest")} for s in own],
                       "target": manifest["origin_sha256"] if whole else None,
                       "assistant": mtp.get("origin_sha256")}.items():
        check(found[key] == right, f"{folder / 'receipt.json'}: {key}")
    check({p.name for p in folder.iterdir()} == {"receipt.json", *(f["file"] for f in files + own)}, folder)
    for t in texts: check(bound(t["file"], read(folder / t["file"])) == t, folder / t["file"])
    for s in own:
        read_shard(folder / s["file"], s, {
            f"{t['name']}.{name}": (plane["offset"], dtype, shape(t["rows"], t["columns"]))
            for t in manifest["tensors"] for plane, (name, dtype, shape) in zip(t["planes"], PLANES[t["type"]])
            if manifest["shards"][plane["shard"]] is s})
    return manifest
if len(sys.argv) not in (2, 3): sys.exit("expected the folder of an artifact, and of one attached to it")
plain = None
try:
    for folder in sys.argv[1:]:
        manifest = read_folder(pathlib.Path(folder))
        check(manifest["attached_to"] == plain, f"{folder}/manifest.json: attached_to")
        plain = sha256(text(manifest))
    print(*(f"{t['name']} {t['type']} [{t['rows']}, {t['columns']}]" for t in manifest["tensors"]), f"digest {plain}", sep="\n")
except Exception as error: check(False, f"{' '.join(sys.argv[1:])}: {error!r}")
