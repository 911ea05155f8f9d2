/** The animals, in memory. Each process has its own. */

export const petStatuses = ['available', 'pending', 'sold'] as const;

export type PetStatus = (typeof petStatuses)[number];

export interface NewPet {
  readonly name: string;
  readonly categoryId: bigint;
  /** Left out when the client left it out: the specification states no default. */
  readonly status?: PetStatus;
}

export interface Pet extends NewPet {
  readonly id: bigint;
}

export interface PetQuery {
  /** Most animals in one page. */
  readonly limit: number;
  readonly status?: PetStatus;
  /** Only animals with a greater id. */
  readonly after?: bigint;
}

export interface PetStore {
  add(pet: NewPet): { readonly kind: 'added'; readonly pet: Pet } | { readonly kind: 'full' };
  get(id: bigint): Pet | undefined;
  /** By ascending id; `more` when animals of this query follow the page. */
  list(query: PetQuery): { readonly pets: readonly Pet[]; readonly more: boolean };
}

/** An empty store of at most `petsMax` animals, which get ascending ids from `firstId` on. */
export function createPetStore({ petsMax, firstId = 1n }: { petsMax: number; firstId?: bigint }): PetStore {
  // Nothing is ever removed, so an animal's place is its id less the first one.
  const pets: Pet[] = [];
  const placeOf = (id: bigint) => Number(id - firstId);

  return {
    add(newPet) {
      if (pets.length >= petsMax) return { kind: 'full' };
      const pet = { id: firstId + BigInt(pets.length), ...newPet };
      pets.push(pet);
      return { kind: 'added', pet };
    },

    get(id) {
      return pets[placeOf(id)];
    },

    list({ limit, status, after }) {
      const page: Pet[] = [];
      const start = after === undefined ? 0 : Math.max(0, placeOf(after) + 1);
      for (let place = start; place < pets.length; place++) {
        const pet = pets[place];
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
