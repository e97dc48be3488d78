/** Random numbers determined by a seed and a name, so that no part changes another part's numbers. */
export interface Random {
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly next: () => number
  readonly between: (least: number, most: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  readonly weighted: <A extends { readonly weight: number }>(items: ReadonlyArray<A>) => A
  /** The milliseconds until the next event, at this rate per second. */
  readonly gap: (perSecond: number) => number
}

export const makeRandom = (seed: number, name: string): Random => {
  let state = seed >>> 0
  for (const char of name) state = (Math.imul(state ^ char.charCodeAt(0), 0x01000193) + 1) >>> 0
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const pick = <A>(items: ReadonlyArray<A>): A => items[Math.floor(next() * items.length)]!
  return {
    next,
    pick,
    between: (least, most) => least + next() * (most - least),
    chance: (probability) => next() < probability,
    weighted: (items) => {
      let left = next() * items.reduce((sum, { weight }) => sum + weight, 0)
      return items.find(({ weight }) => (left -= weight) < 0) ?? items.at(-1)!
    },
    gap: (perSecond) => (-Math.log(1 - next()) / perSecond) * 1000
  }
}
