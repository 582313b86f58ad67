/** A name that somebody gave a file, without path and control characters, at most 255 characters; '' when there is none. */
export function plainFileName(name: string | null | undefined): string {
  return (name ?? '')
    .replace(/^.*[/\\]/, '')
    .replace(/\p{Cc}/gu, '')
    .slice(0, 255);
}
