/** Writes bits, highest first, and the variable-length codes of H.264 (section 9.1 of the standard). */
export class BitWriter {
  #bytes = new Uint8Array(1024)
  #bitCount = 0

  /** Writes the `count` low bits of an unsigned number, at most 32. */
  bits(value: number, count: number): this {
    this.#reserve(8)
    for (let place = count - 1; place >= 0; place -= 1) {
      const bit = (value >>> place) & 1
      const at = this.#bitCount >>> 3
      this.#bytes[at] = (this.#bytes[at] ?? 0) | (bit << (7 - (this.#bitCount & 7)))
      this.#bitCount += 1
    }
    return this
  }

  /** Writes unsigned Exp-Golomb codes `ue(v)`. */
  ue(...values: ReadonlyArray<number>): this {
    for (const value of values) {
      const length = 31 - Math.clz32(value + 1)
      this.bits(0, length).bits(value + 1, length + 1)
    }
    return this
  }

  /** Writes zero bits up to the next whole byte. */
  align(): this {
    this.#reserve(1)
    this.#bitCount = (this.#bitCount + 7) & ~7
    return this
  }

  /** Writes whole bytes. Only allowed after `align`. */
  bytes(values: Uint8Array): this {
    this.#reserve(values.length)
    this.#bytes.set(values, this.#bitCount >>> 3)
    this.#bitCount += values.length * 8
    return this
  }

  /** Ends the unit with its stop bit and returns the bytes. */
  finish(): Uint8Array {
    this.bits(1, 1).align()
    return this.#bytes.slice(0, this.#bitCount >>> 3)
  }

  #reserve(more: number): void {
    const needed = (this.#bitCount >>> 3) + more + 1
    if (needed <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
    grown.set(this.#bytes)
    this.#bytes = grown
  }
}
