import { Effect, Schema } from "effect"
import {
  audioBytesMax,
  audioSecondsMax,
  audioSecondsMin,
  mediaUrlCharactersMax,
  negativePromptCodePointsMax,
  seedMax,
  textCodePointsMax,
  videoLongSeconds,
  videoShortSeconds
} from "../../domain/limits/Limits.ts"
import { describeValue } from "../FieldFaults.ts"

/** In a longer text, code points are not counted for the error message. */
const countedUnitsMax = 1_000_000

const codePoints = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

const lengthText = (text: string): string =>
  text.length > countedUnitsMax ? `at least ${Math.ceil(text.length / 2)}` : `${codePoints(text)}`

/** A code point has at most two UTF-16 units, so most texts need no counting. */
const exceeds = (text: string, maximum: number): boolean =>
  text.length > 2 * maximum || (text.length > maximum && codePoints(text) > maximum)

/** Postgres stores neither half of a surrogate pair nor U+0000 (ADR 0110). */
export const storableFault = (text: string): string | undefined => {
  if (!text.isWellFormed()) {
    return "Contains half of a surrogate pair, which is not a Unicode character"
  }
  return text.includes("\u0000") ? "Contains the character U+0000, which is not allowed" : undefined
}

/** Accepts only texts that can be stored. */
export const storable = Schema.makeFilter<string>(
  storableFault,
  { toJsonSchema: () => [{}, true] },
  true
)

const atMost = (maximum: number) =>
  Schema.makeFilter<string>(
    (text) =>
      exceeds(text, maximum)
        ? `Expected at most ${maximum} characters, got ${lengthText(text)}`
        : undefined,
    {
      toJsonSchema: () => ({ maxLength: maximum }),
      arbitraryConstraint: { maxCodePoints: maximum }
    }
  )

const notEmpty = Schema.makeFilter<string>(
  (text) => (text.length === 0 ? "Expected at least 1 character, got an empty string" : undefined),
  { toJsonSchema: () => ({ minLength: 1 }), arbitraryConstraint: { minCodePoints: 1 } }
)

/** A text that can be stored. Its users add a maximum length. */
export const Text = Schema.String.check(storable)

/** A required text of 1 to `maximum` Unicode code points. docs/reference/models.md#body-rules */
export const prompt = (maximum: number, description: string) =>
  Text.check(notEmpty, atMost(maximum)).annotate({ description })

/** A text without a field-specific limit (ADR 0110). */
export const LongText = Text.check(atMost(textCodePointsMax))

/** May be empty. */
export const NegativePrompt = Text.check(atMost(negativePromptCodePointsMax)).annotate({
  description: "What the result should not show"
})

/** An integer within inclusive bounds. Both checks have the same message, so that only one fault is reported. */
export const count = (minimum: number, maximum: number) => {
  const expected = `an integer between ${minimum} and ${maximum}`
  return Schema.Number.check(
    Schema.isInt({ expected }),
    Schema.isBetween({ minimum, maximum }, { expected })
  )
}

export const imageCount = (maximum: number, byDefault: number) =>
  count(1, maximum)
    .annotate({ default: byDefault, description: "How many images; affects the cost" })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

export const Seed = count(0, seedMax).annotate({
  description: "Start of the random numbers; the same seed does not guarantee the same output"
})

const flag = (byDefault: boolean, description: string) =>
  Schema.Boolean.annotate({ default: byDefault, description }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(byDefault))
  )

/** A flag that is true by default; `null` leaves the choice to the vendor. */
export const nullableFlag = (description: string) =>
  Schema.NullOr(Schema.Boolean)
    .annotate({ default: true, description })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(true)))

export const SafetyFilter = nullableFlag("`false` disables content safety inspection")

export const promptExtend = (byDefault: boolean) =>
  flag(byDefault, "Rewrites the prompt for a better result; takes slightly longer")

export const choice = <const Words extends ReadonlyArray<string>>(
  words: Words,
  byDefault: Words[number],
  description: string
): Schema.withDecodingDefaultKey<Schema.Literals<Words>> =>
  Schema.withDecodingDefaultKey<Schema.Literals<Words>>(Effect.succeed(byDefault))(
    Schema.Literals(words).annotate({ default: byDefault, description })
  )

export const Duration = Schema.Literals([videoShortSeconds, videoLongSeconds]).annotate({
  description: `Seconds; absent means ${videoShortSeconds}`
})

/** For models that generate videos of only one length. */
export const ShortDuration = Schema.Literal(videoShortSeconds).annotate({
  description: `Seconds; only ${videoShortSeconds}`
})

/** Length-limited, because a Base64 text may consist of letters only. */
const schemed = /^[a-z][a-z0-9+.-]{0,63}:\/\//iu

/** Whether a text is read as a URL rather than as Base64: it starts with a scheme and `://`. */
export const isUrlCandidate = (text: string): boolean => schemed.test(text)

const blank = /[\s\p{Cc}]/u

const urlFault = (text: string, schemes: ReadonlyArray<string>): string | undefined => {
  if (text.length > mediaUrlCharactersMax) {
    return `Expected a URL of at most ${mediaUrlCharactersMax} characters, got ${text.length}`
  }
  const url = blank.test(text) || !text.isWellFormed() ? null : URL.parse(text)
  if (url === null || url.hostname === "") return `Expected a valid URL, got ${describeValue(text)}`
  if (!schemes.includes(url.protocol)) {
    return `Expected a URL that starts with ${schemes.map((it) => `${it}//`).join(" or ")}, got ${describeValue(text)}`
  }
  return url.username === "" && url.password === ""
    ? undefined
    : "Expected a URL without user name and password"
}

/** A medium. URLs are checked here; `acceptBody` inspects Base64 and `data:` URIs. */
const medium = (schemes: ReadonlyArray<string>, inline: boolean, description: string) =>
  Schema.String.check(
    Schema.makeFilter<string>(
      (text) => {
        if (text.length === 0) return "Expected at least 1 character, got an empty string"
        if (isUrlCandidate(text) || !inline) return urlFault(text, schemes)
        return undefined
      },
      { toJsonSchema: () => [inline ? { minLength: 1 } : { minLength: 1, format: "uri" }, true] }
    )
  ).annotate({ description })

/** docs/reference/models.md#media-in-bodies */
export const image = (description: string) =>
  medium(["https:", "http:"], true, `${description}: public URL, data URI or Base64`)

const audioRules =
  `WAV or MP3, ${audioSecondsMin} to ${audioSecondsMax} seconds, ` +
  `at most ${audioBytesMax / 1024 / 1024} MB`

/** docs/reference/models.md#audio-rules */
export const audioUrl = (more = "") =>
  Schema.optionalKey(
    Schema.NullOr(
      medium(["https:"], true, `Custom audio (${audioRules}): public https URL, data URI or Base64`)
    ).annotate({
      description:
        `Custom audio, overrides \`audio\`: ${audioRules}, as a public ` +
        `https URL, data URI or Base64${more}`
    })
  )

/** By URL only, because videos are too large for a body. */
export const video = (description: string) =>
  medium(["https:"], false, `${description}: public https URL`)

/** A set with at least one item. */
export const someOf = <Item extends Schema.Constraint>(item: Item) =>
  Schema.Array(item).check(
    Schema.isMinLength(1, { message: "Expected at least one" }),
    Schema.isUnique({ message: "Expected each only once" })
  )

export const images = (maximum: number, description: string) =>
  Schema.Array(image("A picture"))
    .check(
      Schema.isBetweenLength(1, maximum, {
        expected: maximum === 1 ? "1 image" : `1 to ${maximum} images`
      })
    )
    .annotate({ description })
