"""Checks every byte of an artifact as docs/artifact.md says, and lists its tensors.

    python3 docs/read_artifact.py ARTIFACT [ATTACHED]
"""
import hashlib, json, pathlib, struct, sys

PIECE = 4 << 20
PLANES = {  # of a type: name, dtype, and the shape for r rows and c columns
    "q4_0": [("quants", "U8", lambda r, c: [r, c // 2]), ("scales", "F16", lambda r, c: [r, c // 32])],
    "q8_0": [("quants", "U8", lambda r, c: [r, c]), ("scales", "F16", lambda r, c: [r, c // 32])],
    "f16": [("values", "F16", lambda r, c: [r, c])], "f32": [("values", "F32", lambda r, c: [r, c])],
    "u32": [("values", "U32", lambda r, c: [r, c])]}

def check(right, what): right or sys.exit(f"{what}: not as docs/artifact.md says")
def sha256(data): return hashlib.sha256(data).hexdigest()
def text(value): return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()

def read_json(path, schema):
    value = json.loads(path.read_bytes())
    check(text(value) == path.read_bytes() and (value["schema"], value["schema_version"]) == (schema, 4), path)
    return value

def read_shard(path, shard, planes):
    data, hashes = path.read_bytes(), shard["pieces"]
    check(len(data) == shard["bytes"] and len(hashes) == -(-len(data) // PIECE), path)
    for i, piece in enumerate(hashes): check(sha256(data[i * PIECE:(i + 1) * PIECE]) == piece, f"{path}: piece {i}")
    check(sha256(b"".join(map(bytes.fromhex, hashes))) == shard["digest"], f"{path}: digest")
    start = end = 8 + struct.unpack("<Q", data[:8])[0]
    for name, entry in sorted(json.loads(data[8:start]).items(), key=lambda e: e[1]["data_offsets"]):  # tile the data
        begin, end, last = *(start + offset for offset in entry["data_offsets"]), end
        padding = name.startswith("padding.") and not any(data[begin:end])
        fits = padding or planes.pop(name, None) == (begin, entry["dtype"], entry["shape"])
        check(fits and begin == last, f"{path}: {name}")
    check(end == len(data) and not planes, path)

def read_folder(folder):
    receipt = read_json(folder / "receipt.json", "tandem.receipt")
    check(sha256(text({k: v for k, v in receipt.items() if k != "digest"})) == receipt["digest"], "receipt.json")
    manifest = read_json(folder / "manifest.json", "tandem.artifact")
    own = [s for s in manifest["shards"] if not manifest["attached_to"] or s["role"] == "assistant"]
    check([[s["file"], s["digest"]] for s in own] == [[s["file"], s["digest"]] for s in receipt["shards"]], "shards")
    names = ["receipt.json"] + [file["file"] for file in receipt["files"] + own]
    check("manifest.json" in names and sorted(names) == sorted(path.name for path in folder.iterdir()), folder)
    for file in receipt["files"]:
        data = (folder / file["file"]).read_bytes()
        check((len(data), sha256(data)) == (file["bytes"], file["sha256"]), file["file"])
    for part, holder in (("target", manifest), ("assistant", manifest["views"].get("mtp"))):
        check(not receipt[part] or sha256(text(receipt[part])) == holder["origin_sha256"], part)
    for shard in own:
        read_shard(folder / shard["file"], shard, {
            f"{t['name']}.{name}": (plane["offset"], dtype, shape(t["rows"], t["columns"]))
            for t in manifest["tensors"] for plane, (name, dtype, shape) in zip(t["planes"], PLANES[t["type"]])
            if manifest["shards"][plane["shard"]] is shard})
    return manifest

manifests = [read_folder(pathlib.Path(folder)) for folder in sys.argv[1:]]
digests = [None] + [sha256(text(manifest)) for manifest in manifests]
for manifest, plain in zip(manifests, digests): check(manifest["attached_to"] == plain, "attached_to")
for t in manifests[-1]["tensors"]: print(f"{t['name']} {t['type']} [{t['rows']}, {t['columns']}]")
print(f"digest {digests[-1]}")
