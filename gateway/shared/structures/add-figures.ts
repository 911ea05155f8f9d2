/** Numbers, and lists, maps and objects of numbers. */
type Figures =
  | number
  | readonly Figures[]
  | ReadonlyMap<unknown, Figures>
  | { readonly [name: string]: Figures };

/** A figure that is in only one of the arguments is copied. */
export function addFigures<Form extends object>(one: Form, other: Form): Form {
  return add(one as Figures, other as Figures) as Form;
}

function add(one: Figures, other: Figures | undefined): Figures {
  if (other === undefined) return one;
  if (typeof one === 'number') return one + (other as number);
  if (one instanceof Map) {
    const sums = new Map<unknown, Figures>(one);
    for (const [name, figures] of other as ReadonlyMap<unknown, Figures>)
      sums.set(name, add(figures, sums.get(name)));
    return sums;
  }
  if (Array.isArray(one)) {
    const [short, long] = [one, other as readonly Figures[]].sort((a, b) => a.length - b.length);
    return (long ?? []).map((figures, index) => add(figures, short?.[index]));
  }
  const sums: Record<string, Figures> = { ...(one as Record<string, Figures>) };
  for (const [name, figures] of Object.entries(other)) sums[name] = add(figures, sums[name]);
  return sums;
}
