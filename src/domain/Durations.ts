/**
 * A histogram of durations with eight classes per power of two of milliseconds, so that a percentile differs from the
 * exact one by at most a sixteenth. An array: the index of the first class, then the count of it and of each following
 * class. The store adds histograms up (`durations_add`). docs/reference/usage.md#durations
 */
export type Durations = ReadonlyArray<number>

const classesPerPower = 8
/** 24 days: nothing takes longer. */
const millisMax = 2 ** 31 - 1

/** The index of the class of a duration. */
export const placeOf = (millis: number): number => {
  const whole = Math.min(Math.max(Math.floor(millis), 1), millisMax)
  const exponent = 31 - Math.clz32(whole)
  return exponent * classesPerPower + Math.floor((whole / 2 ** exponent - 1) * classesPerPower)
}

/** The middle of a class, in milliseconds. */
export const millisAt = (place: number): number => {
  const width = 2 ** Math.floor(place / classesPerPower) / classesPerPower
  const least = width * (classesPerPower + (place % classesPerPower))
  return width <= 1 ? least : Math.round(least + (width - 1) / 2)
}

/**
 * The percentile in milliseconds: the shortest duration that at least this share does not exceed. `null` if there are
 * no durations.
 */
export const percentile = (durations: Durations, share: number): number | null => {
  const [first = 0, ...counts] = durations
  const total = counts.reduce((sum, count) => sum + count, 0)
  let left = Math.ceil(total * share)
  if (left <= 0) return null
  const index = counts.findIndex((count) => (left -= count) <= 0)
  return millisAt(first + index)
}

/** Collects counts while a batch is summed up. */
export class DurationCounts {
  readonly #counts = new Map<number, number>()

  add(millis: number): void {
    const place = placeOf(millis)
    this.#counts.set(place, (this.#counts.get(place) ?? 0) + 1)
  }

  /** The histogram as a Postgres array; `null` if it is empty. */
  text(): string | null {
    if (this.#counts.size === 0) return null
    const first = Math.min(...this.#counts.keys())
    const last = Math.max(...this.#counts.keys())
    const counts = [first]
    for (let place = first; place <= last; place++) counts.push(this.#counts.get(place) ?? 0)
    return `{${counts.join(",")}}`
  }
}
