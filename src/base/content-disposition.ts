/**
 * A `Content-Disposition: attachment` with a file name (RFC 6266): plain ASCII for every client, and beside it the
 * exact name in UTF-8 (RFC 8187) when the two differ. A path is cut to its last part, and control characters go, so
 * that no client writes elsewhere than it meant to.
 */
export function attachment(fileName: string): string {
  const name = fileName
    .replace(/^.*[/\\]/s, '')
    .replace(/\p{Cc}/gu, '')
    .toWellFormed();
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const plain = `attachment; filename="${ascii}"`;
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${percentEncode(name)}`;
}

/** `encodeURIComponent`, and the characters it leaves that RFC 8187 does not. */
function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
