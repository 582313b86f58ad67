/** A metric as `/metrics` tells it. */
export interface ExposedMetric {
  /** With its suffix, such as `_total`; of a histogram, the name without one. */
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** The labels that any of its series has, without `le`. */
  readonly labels: readonly string[];
}

/** The metrics in Prometheus's text. */
export function readMetrics(text: string): ExposedMetric[] {
  return [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name = '', help = '']) => {
    const [, type = ''] = new RegExp(`^# TYPE ${name} (\\S+)$`, 'm').exec(text) ?? [];
    const labels = new Set<string>();
    for (const [, pairs = ''] of text.matchAll(
      new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm'),
    ))
      for (const [, label = ''] of pairs.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) labels.add(label);
    labels.delete('le');
    return { name, type, help, labels: [...labels].sort() };
  });
}

/** The names and labels of all series in Prometheus's text, without their values. */
export function seriesOf(text: string): string[] {
  return text
    .split('\n')
    .flatMap((line) => (line === '' || line.startsWith('#') ? [] : [line.replace(/ \S+$/, '')]));
}

/** The value of a series; undefined when there is none. */
export function seriesValue(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

/** What a PromQL expression asks for: the series by name, and the labels it chooses among them by. */
export function selectorsOf(expression: string): { name: string; labels: string[] }[] {
  const found: { name: string; labels: string[] }[] = [];
  const withoutStrings = expression.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  const withoutGrouping = withoutStrings.replace(
    /\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g,
    ' ',
  );
  const token = /([a-zA-Z_:][\w:]*)\s*(\(|\{([^}]*)\})?|\[[^\]]*\]|\d[\w.]*/g;
  for (const [, name, next, matchers = ''] of withoutGrouping.matchAll(token)) {
    if (name === undefined || next === '(' || /^(?:and|or|unless|bool|offset)$/.test(name)) continue;
    const labels = [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label);
    found.push({ name, labels });
  }
  return found;
}
