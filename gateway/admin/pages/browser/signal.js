import { useEffect, useState } from 'preact/hooks';

/** Makes a signal that several components can use. A call of `tell` renders all components that use the signal. */
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
