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
  // One promise per item: racing all of them against a single one would keep every item's race alive.
  let interrupt = () => {};
  const onAbort = () => interrupt();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await new Promise<IteratorResult<T, unknown>>((resolve, reject) => {
        interrupt = () => reject(signal.reason);
        iterator.next().then(resolve, reject);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    const ended = iterator.return?.();
    if (signal.aborted) ended?.then(undefined, () => {});
    else await ended;
  }
}

/** What `work` comes to, or the signal's reason as soon as that is given: the work is not waited for then. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let interrupt = () => {};
  const onAbort = () => interrupt();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await new Promise<T>((resolve, reject) => {
      interrupt = () => reject(signal.reason);
      work.then(resolve, reject);
      if (signal.aborted) interrupt();
    });
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
