import { encode } from "fast-png"

/** A small picture of one colour. */
export const solidPng = (side: number): Buffer =>
  Buffer.from(
    encode({
      width: side,
      height: side,
      channels: 3,
      data: new Uint8Array(side * side * 3).fill(120)
    })
  )
