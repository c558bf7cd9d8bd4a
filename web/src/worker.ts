// The worker in which a model runs: one Host behind messages.
import { invoke, type FromWorker, type ToWorker } from './channel.js';
import { toErrorData } from './errors.js';
import { Host } from './host.js';

const host = new Host();
const running = new Map<number, AbortController>();
const send = (message: FromWorker) => self.postMessage(message);

self.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
  const { id } = data;
  if ('abort' in data) return running.get(id)?.abort();
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const result = await invoke(host, data.method, data.argument, {
      emit: (event) => send({ id, event }),
      signal: controller.signal,
    });
    send({ id, result });
  } catch (error) {
    send({ id, error: toErrorData(error) });
  } finally {
    running.delete(id);
  }
};
