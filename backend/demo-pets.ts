import type { NewPet } from './pets.ts';

/** A few animals for `STORE_SEED=demo`, so that a new store is not empty. */
export const demoPets: readonly NewPet[] = [
  { name: 'Ada the otter', categoryId: 1n, status: 'available' },
  { name: 'Grace the heron', categoryId: 2n, status: 'available' },
  { name: 'Linus the badger', categoryId: 1n, status: 'pending' },
  { name: 'Edsger the tortoise', categoryId: 3n, status: 'sold' },
  { name: 'Barbara the lynx', categoryId: 1n },
];
