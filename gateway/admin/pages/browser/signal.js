import { useEffect, useState } from 'preact/hooks';

/** A value outside of the components. The components that use it are drawn again when it changes. */
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
