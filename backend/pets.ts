/** The animals, in memory. Each process has its own animals. */

export const petStatuses = ['available', 'pending', 'sold'] as const;

export type PetStatus = (typeof petStatuses)[number];

export interface NewPet {
  readonly name: string;
  readonly categoryId: bigint;
  /** Absent when the client omitted the field, because the specification states no default. */
  readonly status?: PetStatus;
}

interface Pet extends NewPet {
  readonly id: bigint;
}

export interface PetQuery {
  /** The page size: the maximum number of animals in one response. */
  readonly limit: number;
  readonly status?: PetStatus;
  /** Only animals with a greater id are returned. */
  readonly after?: bigint;
}

export interface PetStore {
  add(pet: NewPet): { readonly kind: 'added'; readonly pet: Pet } | { readonly kind: 'full' };
  get(id: bigint): Pet | undefined;
  /**
   * A page of animals, sorted by ascending id. `more` is true when further matching animals follow this page.
   */
  list(query: PetQuery): { readonly pets: readonly Pet[]; readonly more: boolean };
}

/** Creates an empty store of at most `petsMax` animals, which get ascending ids from `firstId`. */
export function createPetStore({ petsMax, firstId = 1n }: { petsMax: number; firstId?: bigint }): PetStore {
  // Animals are never removed, so an animal's index is its id minus the first id.
  const pets: Pet[] = [];
  const indexOf = (id: bigint) => Number(id - firstId);

  return {
    add(newPet) {
      if (pets.length >= petsMax) return { kind: 'full' };
      const pet = { id: firstId + BigInt(pets.length), ...newPet };
      pets.push(pet);
      return { kind: 'added', pet };
    },

    get(id) {
      return pets[indexOf(id)];
    },

    list({ limit, status, after }) {
      const page: Pet[] = [];
      const start = after === undefined ? 0 : Math.max(0, indexOf(after) + 1);
      for (let index = start; index < pets.length; index++) {
        const pet = pets[index];
        if (pet === undefined || (status !== undefined && pet.status !== status)) continue;
        if (page.length === limit) return { pets: page, more: true };
        page.push(pet);
      }
      return { pets: page, more: false };
    },
  };
}

export function isPetStatus(value: unknown): value is PetStatus {
  return petStatuses.some((status) => status === value);
}
