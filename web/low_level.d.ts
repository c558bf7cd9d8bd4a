// The low-level API: what the modules webgpu_llama and gemma4_mtp give. One engine over one GPU device, in the thread
// that calls it. Every failure is a TandemError with the C++ engine's code; what fails leaves nothing behind.

/** The names of ErrorCode in include/tandem/error.h. */
export type ErrorCode =
  | 'invalid_argument' | 'io' | 'not_found' | 'already_exists' | 'unsafe_path' | 'malformed_json' | 'unknown_key'
  | 'missing_key' | 'wrong_type' | 'bad_value' | 'unsupported' | 'malformed_checkpoint' | 'malformed_artifact'
  | 'hash_mismatch' | 'unverified' | 'malformed_text' | 'limit_exceeded' | 'context_exceeded' | 'no_adapter'
  | 'gpu_validation' | 'out_of_memory' | 'device_lost' | 'not_finite' | 'cancelled' | 'internal';

/** `name` is "TandemError"; read `code` instead of using instanceof, as each module has a class of its own. */
export interface TandemError extends Error {
  code: ErrorCode;
}

/** A range of a file of the artifact with the sha256 (64 hex digits) that its bytes must have. */
export interface Range {
  file: string;
  offset: number;
  bytes: number;
  sha256: string;
}

/** Where an artifact's files come from: the pieces of its shards (at most 4 MiB each) and its small files. */
export interface Shards {
  /**
   * The bytes of a range, exactly. Called in the artifact's order for up to `readAhead` ranges at once. The engine
   * verifies them by WebCrypto before any use. Throw to end the load: the error is passed on as it is.
   */
  read(range: Range, signal: AbortSignal): Promise<Uint8Array>;
  /** Called after a range was verified, before its bytes are used, and awaited: the moment to put it in a cache. */
  verified?(range: Range, bytes: Uint8Array): void | Promise<void>;
  /** Called where the bytes are wrong: true reads them once more (a damaged cache entry was dropped). */
  refused?(range: Range, found: string): boolean | Promise<boolean>;
}

export type Progress =
  | { phase: 'weights'; done: number; total: number } // bytes
  | { phase: 'kernels'; done: number; total: number }; // pipelines compiled of those asked for so far

export interface EngineOptions {
  /** A device of the caller's, which is never destroyed here. Without one the engine asks for its own at every load
   *  and destroys it at unload. */
  device?: GPUDevice;
  /** The adapter of `device`, or the one to ask for a device. Its info is what EngineInfo says of it. */
  adapter?: GPUAdapter;
  /** By default navigator.gpu; under Node what `create([])` of the package `webgpu` gives. */
  gpu?: GPU;
  powerPreference?: GPUPowerPreference; // 'high-performance'
  /** Limits lower than the adapter's, by WebGPU's names, for a device of the engine's own (tests). */
  limits?: Record<string, number>;
  /** Faster routes to keep off. */
  disabledTiers?: ('subgroups' | 'dp4a' | 'f16')[];
  context?: number;
  inputBound?: number;
  kv?: 'f16' | 'f32';
  /** What products read of rows: f32, the default, or int8 in blocks of 32, which is faster and rounds. */
  activations?: 'f32' | 'int8';
  /** 0 to 2; by default 2 in gemma4_mtp where the artifact has an assistant, else 0. With 0 it is not fetched. */
  drafts?: number;
  roundsInFlight?: number;
  /** The sha256 that the manifest must have, for instance the one in release.json. */
  artifact?: string;
  /** Ranges that are fetched ahead of the one that is written; 4. */
  readAhead?: number;
  onProgress?: (progress: Progress) => void;
  /** Ends a load: everything is freed, and load throws the signal's reason. */
  signal?: AbortSignal;
  /** The module's wasm, where it does not lie beside its js. */
  wasmBinary?: ArrayBuffer;
  locateFile?: (file: string) => string;
}

/** What a load would need, and what the adapter allows. */
export interface Plan {
  artifact: string; // sha256 of the manifest
  views: ('plain' | 'mtp')[];
  context: number;
  inputBound: number;
  drafts: number;
  downloadBytes: number; // the ranges that a load reads
  weightBytes: number;
  scratchBytes: number;
  sequenceBytes: number; // of each session
  largestBuffer: { name: string; bytes: number };
  limits: { maxBufferBytes: number; maxBindingBytes: number };
  adapter: { name: string; vendor: string; driver: string; software: boolean; tiers: string[]; timestamps: boolean };
  /** Why a load would be refused, with the numbers; null where it fits. */
  refusal: { code: ErrorCode; message: string } | null;
  ranges: Range[]; // what a load reads, in its order
}

export interface EngineInfo {
  artifact: string;
  adapter: string;
  driver: string;
  library: string; // "browser WebGPU"
  software: boolean;
  tiers: string[];
  kernelClosure: string;
  sampling: Required<SampleOptions>;
  vocabulary: number;
  context: number;
  inputBound: number;
  drafts: number;
  kv: 'f16' | 'f32';
  activations: 'f32' | 'int8'; // also f32 where no product can read int8
  weightBytes: number;
  gpuBytes: number;
  kernels: number;
  rowShapes: number;
  rowShapesDifferent: number;
  loadMs: number;
  compileMs: number;
}

export interface SampleOptions {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  penaltyWindow?: number;
  seed?: number | bigint; // below 2^64; EngineInfo.sampling.seed is a number where it is exact
}

export interface GenerateOptions {
  maxTokens?: number; // 256
  ignoreEos?: boolean;
  /** What is left out keeps the artifact's default. */
  sampling?: SampleOptions;
  biases?: { token: number; bias: number }[];
  stopStrings?: string[];
  mtp?: 'automatic' | 'on' | 'off';
}

export interface GenerateStats {
  promptTokens: number;
  reusedTokens: number;
  generatedTokens: number;
  rounds: number;
  drafted: [number, number];
  accepted: [number, number];
  discarded: number;
  firstTokenMs: number;
  decodeMs: number;
  prefillTokensPerSecond: number;
  decodeTokensPerSecond: number;
  acceptance: number;
  tokensPerRound: number;
}

export interface Generation {
  ids: number[];
  text: string;
  stop: 'stop_id' | 'stop_string' | 'length' | 'context' | 'aborted'; // meaningful once `running` is false
  stats: GenerateStats;
}

export interface Message {
  role: 'system' | 'user' | 'model' | 'assistant';
  /** Plain text: a control token that it spells stays text. */
  content: string;
}

/** Of the dispatches of one kernel at one shape. */
export interface KernelTime {
  kernel: string;
  calls: number;
  timeNs: number;
  bytes: number | null; // moved, where it is known
}

/** One timeline with a KV cache of its own. Sessions of an engine may take turns, step by step. */
export interface Session {
  /** Checks everything before anything changes; ends a generation that is still running. */
  start(prompt: ArrayLike<number>, options?: GenerateOptions): void;
  readonly running: boolean;
  /** Waits for the next round and gives the text that it completes, which may be none. One call at a time. */
  step(): Promise<string>;
  /** The same without waiting: false while no round is ready. */
  poll(): string | false;
  /** Ends the generation and gives the text that was held back; may be called while a step is awaited, which then
   *  gives ''. Nothing where none is running. */
  abort(): string;
  /** Of the running or the last generation. Cheap enough to ask after every step. */
  stats(): GenerateStats;
  generation(): Generation;
  /** The timeline: the last prompt and what was generated after it. */
  ids(): number[];
  nextPrompt(messages: Message[]): number[];
  reset(): void;
  /** Frees its KV cache. */
  close(): void;
  /** Profile builds: the kernels' times of all rounds harvested since the last call. */
  times(): KernelTime[];
}

export interface Census {
  buffers: number; // GPU buffers alive, staging included
  bufferBytes: number;
  pipelines: number; // made since the load
  submissions: number;
  dispatches: number;
  /** Calls from wasm into JavaScript. A round costs one, its submission. */
  crossings: number;
  heapBytes: number; // of the wasm memory
}

export interface Engine {
  readonly version: string; // "0.1.0"
  readonly kernelClosure: string; // sha256 over the module's kernels
  readonly target: 'plain' | 'mtp';
  readonly profile: boolean;

  /** Nothing is allocated on the GPU. `options` replace those of the factory. */
  plan(
    manifest: Uint8Array,
    options?: Pick<EngineOptions, 'context' | 'inputBound' | 'kv' | 'activations' | 'drafts'>,
  ): Promise<Plan>;
  /**
   * manifest and tokenizer are the bytes of manifest.json and of the tokenizer's file that it names. All or nothing.
   * Compiles every pipeline; the first session takes no further time. Errors: those of the files, limit_exceeded,
   * no_adapter, out_of_memory, device_lost, and what `shards` throws. A loaded engine must be unloaded first.
   */
  load(manifest: Uint8Array, shards: Shards, tokenizer: Uint8Array): Promise<EngineInfo>;
  readonly info: EngineInfo | null; // null while nothing is loaded
  session(): Promise<Session>;
  /** What Session.start would say of these options. */
  check(options: GenerateOptions): void;
  encode(text: string): number[];
  encodeChat(messages: Message[]): number[];
  census(): Census;
  /** Frees every GPU buffer, the sessions' too, and a device of the engine's own. Never an error, also after a loss
   *  or during a load, which then throws. The engine can load again. */
  unload(): Promise<void>;
}

declare const create: (options?: EngineOptions) => Promise<Engine>;
export default create;
