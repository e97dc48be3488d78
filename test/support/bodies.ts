import { Effect } from "effect"
import type { Label } from "../../src/catalog/bodies/Bodies.ts"
import { acceptBody } from "../../src/catalog/media/Media.ts"
import type { AcceptedBody } from "../../src/catalog/media/Media.ts"
import type { FieldFault } from "../../src/domain/Problem.ts"
import { base64, png } from "./media.ts"

export const picture = base64(png())
export const pictureUrl = "https://example.com/picture.png"

/** The smallest body that each label accepts. */
export const leastBodies = {
  "text-to-video-spark": { prompt: "a" },
  "keyframe-to-video-plus": { prompt: "a", image: pictureUrl, last_frame: pictureUrl },
  "image-edit": { prompt: "a", images: [pictureUrl] },
  "text-to-image-max": { prompt: "a" },
  "image-edit-pro": { prompt: "a", images: [pictureUrl] },
  "image-edit-max": { prompt: "a", images: [pictureUrl] },
  "text-to-image-preview": { prompt: "a" },
  "image-to-video-spark": { prompt: "a", image: pictureUrl },
  "video-edit-plus": { prompt: "a", function: "image_reference", images: [pictureUrl] }
} as const satisfies Record<Label, unknown>

/** The smallest body with some fields changed; `undefined` removes a field. */
export const bodyWith = (label: Label, fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries({ ...leastBodies[label], ...fields }).filter(([, value]) => value !== undefined)
  )

/** What create returns for the smallest body with some fields changed. */
export const accept = (
  label: Label,
  fields: Record<string, unknown> = {}
): Effect.Effect<AcceptedBody, never> =>
  acceptBody(label, bodyWith(label, fields)).pipe(Effect.orDie)

/** The faults that create reports for the smallest body with some fields changed; none if it is accepted. */
export const faults = (
  label: Label,
  fields: Record<string, unknown> = {}
): Effect.Effect<ReadonlyArray<FieldFault>> =>
  acceptBody(label, bodyWith(label, fields)).pipe(
    Effect.match({ onFailure: ({ errors }) => errors, onSuccess: () => [] })
  )

/** The pointers of the faults. */
export const pointers = (label: Label, fields: Record<string, unknown> = {}) =>
  Effect.map(faults(label, fields), (found) => found.map(({ pointer }) => pointer))
