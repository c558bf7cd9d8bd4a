// Calls of a Host's methods, in this thread or through a worker, with the same results, events and errors.
import { TandemError, fromErrorData, toErrorData, type ErrorData } from './errors.js';
import { Host, type Call } from './host.js';

type Methods = {
  [K in keyof Host]: Host[K] extends (argument: infer A, call: Call<infer E>) => Promise<infer R>
    ? { argument: A; event: E; result: R }
    : never;
};
export type Method = keyof Methods;
export type Argument<M extends Method> = unknown extends Methods[M]['argument'] ? undefined : Methods[M]['argument'];

export interface Hooks<Event> {
  signal?: AbortSignal | undefined;
  on?: (event: Event) => void;
}

export interface Channel {
  call<M extends Method>(
    method: M,
    argument: Argument<M>,
    hooks?: Hooks<Methods[M]['event']>,
  ): Promise<Methods[M]['result']>;
  /** Ends the thread behind it. */
  close(): void;
}

export type ToWorker = { id: number; method: Method; argument: unknown } | { id: number; abort: true };
export type FromWorker = { id: number } & ({ event: unknown } | { result: unknown } | { error: ErrorData });

type Untyped = (argument: unknown, call: Call<unknown>) => Promise<unknown>;

/** Calls `method` of a host whose types the channel has checked. */
export function invoke(host: Host, method: Method, argument: unknown, call: Call<unknown>) {
  return (host[method] as Untyped).call(host, argument, call);
}

/** The Host in the calling thread. */
export class LocalChannel implements Channel {
  readonly #host = new Host();

  async call<M extends Method>(method: M, argument: Argument<M>, hooks: Hooks<never> = {}) {
    const { on = () => {}, signal = new AbortController().signal } = hooks;
    const call = { emit: on as (event: unknown) => void, signal };
    try {
      return (await invoke(this.#host, method, argument, call)) as Methods[M]['result'];
    } catch (error) {
      throw fromErrorData(toErrorData(error));
    }
  }

  close(): void {}
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
  on: ((event: never) => void) | undefined;
}

/** The Host in a worker of its own (worker.ts). */
export class WorkerChannel implements Channel {
  readonly #worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #dead: Error | undefined;

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#receive(data);
    this.#worker.onerror = (event) => {
      const reason = event.message || 'it could not be started';
      this.#end(new TandemError('internal', `the worker ${this.#url} failed: ${reason}`));
    };
  }

  async call<M extends Method>(method: M, argument: Argument<M>, { signal, on }: Hooks<never> = {}) {
    if (this.#dead) throw this.#dead;
    const id = ++this.#lastId;
    const abort = () => this.#send({ id, abort: true });
    try {
      const result = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject, on }));
      this.#send({ id, method, argument });
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort);
      return (await result) as Methods[M]['result'];
    } finally {
      signal?.removeEventListener('abort', abort);
      this.#pending.delete(id);
    }
  }

  close(): void {
    this.#end(new TandemError('invalid_argument', 'the model was disposed of'));
  }

  get #url(): string {
    return new URL('./worker.js', import.meta.url).href;
  }

  #send(message: ToWorker): void {
    if (this.#dead) return;
    try {
      this.#worker.postMessage(message);
    } catch (error) {
      const { message: reason } = error as Error;
      throw new TandemError('invalid_argument', `an option or argument cannot be sent to the worker: ${reason}`);
    }
  }

  #receive(data: FromWorker): void {
    const pending = this.#pending.get(data.id);
    if (!pending) return;
    if ('event' in data) pending.on?.(data.event as never);
    else if ('error' in data) pending.reject(fromErrorData(data.error));
    else pending.resolve(data.result);
  }

  #end(error: Error): void {
    this.#dead ??= error;
    this.#worker.terminate();
    for (const { reject } of this.#pending.values()) reject(error);
  }
}
