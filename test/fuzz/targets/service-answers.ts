import type { TestService } from '../../support/service.ts';

/** Fails when an answer or the log says that the service, and not the caller, was at fault. */
export class ServiceAnswers {
  readonly #service: TestService;
  #linesSeen: number;

  constructor(service: TestService) {
    this.#service = service;
    this.#linesSeen = service.log.length;
  }

  /** @param text the body of an answer. @returns it, parsed. */
  check(status: number, text: string): unknown {
    const lines = this.#service.log.slice(this.#linesSeen);
    this.#linesSeen = this.#service.log.length;
    const errors = lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50);
    if (errors.length > 0) throw new Error(`An error was logged: ${errors[0]}`);
    if (status >= 500) throw new Error(`It was answered ${status}: ${text.slice(0, 500)}`);
    const body: unknown = JSON.parse(text);
    if (text.includes('"INTERNAL"')) throw new Error(`It was answered INTERNAL: ${text.slice(0, 500)}`);
    return body;
  }
}
