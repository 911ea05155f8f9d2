import { useEffect, useState } from 'preact/hooks';

/** Makes a signal for several components. When `tell` is called, the components that use the signal render again. */
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
