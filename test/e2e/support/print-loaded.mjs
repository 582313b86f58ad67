import { registerHooks } from 'node:module';

// `--import` this into a process to have it print which of OpenTelemetry's packages it loads.
registerHooks({
  load(url, context, nextLoad) {
    const [, name] =
      /\/node_modules\/(@opentelemetry\/[^/]+)\//.exec(url.replace(/.*\/node_modules\//, '/node_modules/')) ??
      [];
    if (name !== undefined) process.stderr.write(`loaded ${name}\n`);
    return nextLoad(url, context);
  },
});
