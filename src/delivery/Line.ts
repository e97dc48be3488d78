/** Where a value stands in a line. */
export interface Place<A> {
  readonly value: A
  isIn: boolean
  before: Place<A> | undefined
  behind: Place<A> | undefined
}

/**
 * Values in the order they came, each of which may leave from anywhere. A `Set` has that order too, but one
 * that fills and empties all the time is made anew every so many changes, and its old tables keep what
 * they held, and each other, from the collection of short-lived objects. ADR 0123.
 */
export class Line<A> {
  #first: Place<A> | undefined
  #last: Place<A> | undefined

  /** Who came first. */
  get first(): Place<A> | undefined {
    return this.#first
  }

  /** Stands behind all others. */
  join(value: A): Place<A> {
    const place: Place<A> = { value, isIn: true, before: this.#last, behind: undefined }
    if (this.#last === undefined) this.#first = place
    else this.#last.behind = place
    this.#last = place
    return place
  }

  /** Once: leaving again does nothing. */
  leave(place: Place<A>): void {
    if (!place.isIn) return
    place.isIn = false
    if (place.before === undefined) this.#first = place.behind
    else place.before.behind = place.behind
    if (place.behind === undefined) this.#last = place.before
    else place.behind.before = place.before
    // Who has left points to nobody: it may be old, and would keep the young ones alive
    place.before = undefined
    place.behind = undefined
  }

  /** The first of whom it is true. */
  find(isIt: (value: A) => boolean): A | undefined {
    let place = this.#first
    while (place !== undefined && !isIt(place.value)) place = place.behind
    return place?.value
  }
}
