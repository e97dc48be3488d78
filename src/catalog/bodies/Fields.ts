import { Effect, Schema } from "effect"
import {
  mediaUrlCharactersMax,
  negativePromptCodePointsMax,
  seedMax,
  textCodePointsMax,
  videoLongSeconds,
  videoShortSeconds
} from "../../domain/Limits.ts"
import { quote } from "../Pointers.ts"

/** Texts longer than this are not counted to the end when they are refused. */
const countedUnitsMax = 1_000_000

const codePoints = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

const howMany = (text: string): string =>
  text.length > countedUnitsMax ? `at least ${Math.ceil(text.length / 2)}` : `${codePoints(text)}`

/** The longest text in UTF-16 units that can still have `maximum` code points is twice that. */
const exceeds = (text: string, maximum: number): boolean =>
  text.length > 2 * maximum || (text.length > maximum && codePoints(text) > maximum)

/** Half of a surrogate pair is no character, and Postgres stores neither it nor U+0000. */
const storable = Schema.makeFilter<string>(
  (text) =>
    !text.isWellFormed()
      ? "Contains half of a surrogate pair, which is not a Unicode character"
      : text.includes("\u0000")
        ? "Contains the character U+0000, which is not allowed"
        : undefined,
  { toJsonSchema: () => [{}, true] },
  true
)

const atMost = (maximum: number) =>
  Schema.makeFilter<string>(
    (text) =>
      exceeds(text, maximum)
        ? `Expected at most ${maximum} characters, got ${howMany(text)}`
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

/** A text that may be stored; its length is for who uses it to bound. */
export const Text = Schema.String.check(storable)

/** A required prompt: at least 1 character, at most `maximum`, in Unicode code points (contract 1). */
export const prompt = (maximum: number, description: string) =>
  Text.check(notEmpty, atMost(maximum)).annotate({ description })

/** A text for which the spec gives no length. */
export const LongText = Text.check(atMost(textCodePointsMax))

/** Spec, Limits: at most 500 characters; may be empty. */
export const NegativePrompt = Text.check(atMost(negativePromptCodePointsMax)).annotate({
  description: "What the result should not show"
})

/** A whole number between two bounds, both included; both checks use the same words, so one fault is told. */
export const count = (minimum: number, maximum: number) => {
  const expected = `an integer between ${minimum} and ${maximum}`
  return Schema.Number.check(
    Schema.isInt({ expected }),
    Schema.isBetween({ minimum, maximum }, { expected })
  )
}

/** How many images, with a default. */
export const imageCount = (maximum: number, byDefault: number) =>
  count(1, maximum)
    .annotate({ default: byDefault, description: "How many images; affects the cost" })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

/** Spec, Limits: 0 to 2147483647. */
export const Seed = count(0, seedMax).annotate({
  description: "Start of the random numbers; the same seed does not guarantee the same output"
})

/** `true` or `false`, with what absence means. */
const flag = (byDefault: boolean, description: string) =>
  Schema.Boolean.annotate({ default: byDefault, description }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(byDefault))
  )

/** As `flag`, and `null`, which leaves the choice to the vendor. */
export const nullableFlag = (byDefault: boolean, description: string) =>
  Schema.NullOr(Schema.Boolean)
    .annotate({ default: byDefault, description })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(byDefault)))

/** Spec: `false` disables content safety inspection. */
export const SafetyFilter = nullableFlag(true, "`false` disables content safety inspection")

export const promptExtend = (byDefault: boolean) =>
  flag(byDefault, "Rewrites the prompt for a better result; takes slightly longer")

/** One of some words, with a default. */
export const choice = <const Words extends ReadonlyArray<string>>(
  words: Words,
  byDefault: Words[number],
  description: string
): Schema.withDecodingDefaultKey<Schema.Literals<Words>> =>
  Schema.withDecodingDefaultKey<Schema.Literals<Words>>(Effect.succeed(byDefault))(
    Schema.Literals(words).annotate({ default: byDefault, description })
  )

/** Contract 1: optional, absent means 5 seconds. */
export const Duration = Schema.Literals([videoShortSeconds, videoLongSeconds]).annotate({
  description: `Seconds; absent means ${videoShortSeconds}`
})

/** For models that make videos of one length only. */
export const ShortDuration = Schema.Literal(videoShortSeconds).annotate({
  description: `Seconds; only ${videoShortSeconds}`
})

const schemed = /^[a-z][a-z0-9+.-]*:\/\//iu

/** Anything that starts with a scheme and `://` is meant as a URL, never as Base64 (contract 5). */
export const isUrlCandidate = (text: string): boolean => schemed.test(text)

const blank = /[\s\p{Cc}]/u

const urlFault = (text: string, schemes: ReadonlyArray<string>): string | undefined => {
  if (text.length > mediaUrlCharactersMax) {
    return `Expected a URL of at most ${mediaUrlCharactersMax} characters, got ${text.length}`
  }
  const url = blank.test(text) || !text.isWellFormed() ? null : URL.parse(text)
  if (url === null || url.hostname === "") return `Expected a valid URL, got ${quote(text)}`
  if (!schemes.includes(url.protocol)) {
    return `Expected a URL that starts with ${schemes.map((it) => `${it}//`).join(" or ")}, got ${quote(text)}`
  }
  return url.username === "" && url.password === ""
    ? undefined
    : "Expected a URL without user name and password"
}

/** A URL is checked here; Base64 and `data:` URIs are looked into by `Media.ts`. */
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

/** Contract 5: a public http(s) URL, a `data:` URI or bare Base64. */
export const image = (description: string) =>
  medium(["https:", "http:"], true, `${description}: public URL, data URI or Base64`)

/** Spec, custom audio. Contract 5: a public https URL, a `data:` URI or bare Base64. */
export const audioUrl = (more = "") =>
  Schema.optionalKey(
    Schema.NullOr(
      medium(
        ["https:"],
        true,
        "Custom audio (WAV or MP3, 3 to 30 seconds, at most 15 MB): public https URL, data URI or Base64"
      )
    ).annotate({
      description:
        "Custom audio, overrides `audio`: WAV or MP3, 3 to 30 seconds, at most 15 MB, as a public " +
        `https URL, data URI or Base64${more}`
    })
  )

/** Videos are too large for a body: a public https URL only. */
export const video = (description: string) =>
  medium(["https:"], false, `${description}: public https URL`)

/** A set of words: at least one of them, none twice. */
export const someOf = <Item extends Schema.Constraint>(item: Item) =>
  Schema.Array(item).check(
    Schema.isMinLength(1, { message: "Expected at least one" }),
    Schema.isUnique({ message: "Expected each only once" })
  )

/** Between 1 and `maximum` pictures. */
export const images = (maximum: number, description: string) =>
  Schema.Array(image("A picture"))
    .check(
      Schema.isBetweenLength(1, maximum, {
        expected: maximum === 1 ? "1 image" : `1 to ${maximum} images`
      })
    )
    .annotate({ description })
