/**
 * Something that whoever starts the process has to mend: a setting, a file, the database it is pointed at. `message` is one
 * line that says what is wrong and what to do, without secrets; it is printed as it is, without a stack.
 */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}
