import { Effect, Stream } from "effect"
import { Buffer } from "node:buffer"
import { nextTurn, sliceBytes } from "./shares/Slices.ts"

/** A line of a file, without its end. */
export interface Line {
  /** Only the first bytes, if the line is longer than the maximum. */
  readonly bytes: Buffer
  /** The length of the whole line. */
  readonly length: number
  /** The last bytes of a line that is longer than the maximum. */
  readonly tail?: Buffer
}

const lineFeed = 0x0a

/** How much of each end of a too long line is kept. */
const keptBytes = 64 * 1024

/** Splits a file into its lines while its bytes arrive. A line longer than `bytesMax` is not kept whole. */
export class LineSplitter {
  readonly #bytesMax: number
  #parts: Array<Buffer> = []
  #length = 0
  /** Present for a line that is too long. */
  #head: Buffer | undefined

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** The lines that end in this chunk. */
  push(chunk: Uint8Array): ReadonlyArray<Line> {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const lines: Array<Line> = []
    let from = 0
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, from)) {
      this.#add(bytes.subarray(from, end))
      lines.push(this.#take())
      from = end + 1
    }
    // A copy: the chunk may be a small part of a large block
    if (from < bytes.length) this.#add(Buffer.from(bytes.subarray(from)))
    return lines
  }

  /** The last line, if the file does not end with a line end. */
  end(): ReadonlyArray<Line> {
    return this.#length === 0 ? [] : [this.#take()]
  }

  #add(bytes: Buffer): void {
    this.#parts.push(bytes)
    this.#length += bytes.length
    if (this.#length <= this.#bytesMax) return
    const whole = Buffer.concat(this.#parts)
    this.#head ??= Buffer.from(whole.subarray(0, keptBytes))
    this.#parts = [Buffer.from(whole.subarray(-keptBytes))]
  }

  #take(): Line {
    const [first = Buffer.alloc(0), ...rest] = this.#parts
    const kept = rest.length === 0 ? first : Buffer.concat(this.#parts)
    const line =
      this.#head === undefined
        ? lineOf(kept)
        : { bytes: this.#head, length: this.#length, tail: kept }
    this.#parts = []
    this.#length = 0
    this.#head = undefined
    return line
  }
}

/** Some programs end lines with CR and LF. */
const lineOf = (kept: Buffer): Line => {
  const bytes = kept.at(-1) === 0x0d ? kept.subarray(0, -1) : kept
  return { bytes, length: bytes.length }
}

/** In bytes that are read in the same time. */
const lineCost = 1024

/** Runs for each line of a file, in turns of heavy work: a file of short lines is many of them. */
export const forEachLine = <E, E2>(
  file: Stream.Stream<Uint8Array, E>,
  bytesMax: number,
  run: (line: Line) => Effect.Effect<void, E2>
): Effect.Effect<void, E | E2> =>
  Effect.suspend(() => {
    const splitter = new LineSplitter(bytesMax)
    const runAll = inTurns(run)
    return Effect.andThen(
      Stream.runForEach(file, (chunk) => runAll(splitter.push(chunk))),
      Effect.suspend(() => runAll(splitter.end()))
    )
  })

/** Runs for one line after another, and leaves the event loop to other work in between. */
export const inTurns = <E>(run: (line: Line) => Effect.Effect<void, E>) => {
  let seen = 0
  return Effect.fnUntraced(function* (lines: ReadonlyArray<Line>): Effect.fn.Return<void, E> {
    for (const line of lines) {
      yield* run(line)
      seen += line.length + lineCost
      if (seen < sliceBytes) continue
      seen = 0
      yield* nextTurn
    }
  })
}
