// The package's own types, beside those of the low-level API that it passes on.
import type { Location } from './source.js';
import type { GenerateStats, Generation, KernelTime, Message, Progress } from '../low_level.js';

/** What a session shall go on from. */
export type Prompt =
  /** Text as it is, from the beginning of the timeline on; control tokens in it are parsed. */
  | string
  /** The next turns of the conversation. The session remembers those before. */
  | readonly Message[]
  /** Token ids, from the beginning of the timeline on. */
  | Uint32Array;

export interface PlanOptions {
  /**
   * 'auto' loads the assistant where the artifact has one; 'on' refuses an artifact that has none; 'off' does
   * not fetch it.
   */
  mtp?: 'auto' | 'on' | 'off';
  /** Positions of a session; by default the artifact's bound. */
  context?: number;
  /** Rows of one prefill chunk; by default the artifact's bound. */
  inputBound?: number;
  kv?: 'f16' | 'f32';
  /** What matrix products read of the rows between them: f32, the default, or int8 in blocks of 32, which is faster and rounds. */
  activations?: 'f32' | 'int8';
  /** Drafts of a round, 1 or 2. */
  drafts?: 1 | 2;
  /** Faster routes to keep off. */
  disabledTiers?: ('subgroups' | 'dp4a' | 'f16')[];
  /** Limits below the adapter's, by WebGPU's names. */
  limits?: Record<string, number>;
  powerPreference?: GPUPowerPreference;
  /** The build with GPU timestamps, for Session.times(); slower. */
  profile?: boolean;
  /** The folder of the eight engine files; by default `engine/` beside this package. */
  engine?: string | URL;
  /** A release.json that binds the artifact and the engine files; what differs from it is refused. */
  release?: string | URL;
  /**
   * false runs in the calling thread, which a `gpu`, a `device` or an `adapter` of the caller's requires. By default a
   * worker does the work, where there is one.
   */
  worker?: boolean;
  /** By default navigator.gpu; under Node what `create([])` of the package `webgpu` gives. */
  gpu?: GPU;
  signal?: AbortSignal;
}

export interface LoadOptions extends PlanOptions {
  /** Where verified pieces are kept for the next load. 'opfs': in the origin's private file system. */
  cache?: 'opfs' | 'none';
  /** The caller's own device, which is never destroyed here. */
  device?: GPUDevice;
  /** The adapter of `device`, or the one to ask for a device. */
  adapter?: GPUAdapter;
  onProgress?: (progress: Progress) => void;
  /** By default console.warn. */
  onWarning?: (message: string) => void;
}

export interface GenerateOptions {
  /** 256 */
  maxTokens?: number;
  /** 0 is greedy. What is left out of the sampling options keeps the artifact's default. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  penaltyWindow?: number;
  /** The same seed gives the same text. */
  seed?: number | bigint;
  biases?: { token: number; bias: number }[];
  /** The text ends in front of the first of them. */
  stop?: string | string[];
  /** Goes on past the artifact's stop ids. */
  ignoreEos?: boolean;
  /** Whether rounds draft: 'auto' as long as it is measured to be faster. The text is the same. */
  mtp?: 'auto' | 'on' | 'off';
  /** Ends the generation, which then has the stop reason 'aborted'; never an error. */
  signal?: AbortSignal;
}

export type { GenerateStats, Generation, KernelTime, Location, Message, Progress };
export type { Census, EngineInfo, Plan, SampleOptions } from '../low_level.js';
