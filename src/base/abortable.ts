/**
 * The same stream, ending with the signal's reason as soon as it is given, even while the source keeps everyone
 * waiting. The source is then told to end, and not waited for.
 */
export async function* abortable<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, void> {
  if (signal === undefined) {
    yield* source;
    return;
  }
  const iterator = source[Symbol.asyncIterator]();
  using waiting = endedBy(signal);
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await waiting.until(iterator.next());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    const ended = iterator.return?.();
    if (signal.aborted) ended?.then(undefined, () => {});
    else await ended;
  }
}

/** What `work` comes to, or the signal's reason as soon as that is given: the work is not waited for then. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  using waiting = endedBy(signal);
  return await waiting.until(work);
}

/** Waits for one thing after the other, until the signal is given. */
function endedBy(signal: AbortSignal) {
  let interrupt = () => {};
  const onAbort = () => interrupt();
  signal.addEventListener('abort', onAbort, { once: true });
  return {
    // One promise each: racing all of them against a single one would keep every race alive.
    until: <T>(work: Promise<T>) =>
      new Promise<T>((resolve, reject) => {
        interrupt = () => reject(signal.reason);
        work.then(resolve, reject);
        if (signal.aborted) interrupt();
      }),
    [Symbol.dispose]: () => signal.removeEventListener('abort', onAbort),
  };
}
