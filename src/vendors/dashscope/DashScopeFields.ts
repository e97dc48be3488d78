import { Schema } from "effect"
import { videoShortSeconds } from "../../domain/limits/Limits.ts"
import type { MediaAt } from "../MediaTexts.ts"

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))
const Number = Schema.optionalKey(Schema.NullOr(Schema.Finite))
const Flag = Schema.optionalKey(Schema.NullOr(Schema.Boolean))

/** All fields that are sent unchanged, of all bodies. */
export const Fields = Schema.Struct({
  prompt: Schema.String,
  negative_prompt: Text,
  size: Text,
  resolution: Text,
  n: Number,
  duration: Number,
  seed: Number,
  prompt_extend: Flag,
  audio: Flag,
  template: Text,
  function: Text,
  images: Schema.optionalKey(Schema.Array(Schema.String)),
  obj_or_bg: Schema.optionalKey(Schema.Array(Schema.String)),
  mask_frame_id: Number,
  mask_type: Text,
  expand_ratio: Number,
  expand_mode: Text,
  control_condition: Text,
  strength: Number,
  top_scale: Number,
  bottom_scale: Number,
  left_scale: Number,
  right_scale: Number
})
export type Fields = typeof Fields.Type

/**
 * The upstream body of one label, and its path below `/services/aigc`.
 * docs/reference/vendors.md#dashscope-bodies
 */
export interface Shape {
  readonly path: string
  readonly input: (fields: Fields, at: MediaAt) => Record<string, unknown>
  readonly parameters: (fields: Fields, at: MediaAt) => Record<string, unknown>
}

/** docs/reference/vendors.md#mapping-of-models */
export const common = ({ prompt_extend, seed }: Fields) => ({
  prompt_extend,
  watermark: false,
  seed
})

export const texts = ({ negative_prompt, prompt }: Fields) => ({ prompt, negative_prompt })

export const seconds = ({ duration }: Fields) => ({ duration: duration ?? videoShortSeconds })
