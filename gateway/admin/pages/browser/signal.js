import { useEffect, useState } from 'preact/hooks';

/** Something that changes outside of the components: those that use it are drawn again when it tells them. */
export function createSignal() {
  /** @type {Set<() => void>} */
  const listeners = new Set();
  return {
    tell() {
      for (const listener of listeners) listener();
    },
    use() {
      const [, draw] = useState(0);
      useEffect(() => {
        const listener = () => draw((number) => number + 1);
        listeners.add(listener);
        return () => {
          listeners.delete(listener);
        };
      }, []);
    },
  };
}
