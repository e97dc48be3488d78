/** The vertices of a tetrahedron, each with three 32-bit floats. */
const corners = [
  [0, 1, 0],
  [0.94, -0.33, 0],
  [-0.47, -0.33, 0.82],
  [-0.47, -0.33, -0.82]
]

const faces = [0, 1, 2, 0, 2, 3, 0, 3, 1, 1, 3, 2]

const chunkOf = (type: string, bytes: Buffer, filler: number): Buffer => {
  const body = Buffer.alloc(Math.ceil(bytes.length / 4) * 4, filler)
  bytes.copy(body)
  const head = Buffer.alloc(8)
  head.writeUInt32LE(body.length, 0)
  head.write(type, 4, "latin1")
  return Buffer.concat([head, body])
}

const headBytes = 12
const version = 2

/** A tetrahedron as a GLB file. The seed determines its color. Source: the specification of glTF 2.0, section 4. */
export const renderGlb = ({ prompt, seed }: { readonly prompt: string; readonly seed: number }) => {
  const points = Buffer.from(Float32Array.from(corners.flat()).buffer)
  const indexes = Buffer.from(Uint16Array.from(faces).buffer)
  const shade = (shift: number): number => ((seed >> shift) & 0xff) / 255
  const json = {
    asset: { version: "2.0", generator: "sandbox" },
    scene: 0,
    scenes: [{ nodes: [0] }],
    nodes: [{ mesh: 0, name: prompt.slice(0, 64) }],
    meshes: [{ primitives: [{ attributes: { POSITION: 0 }, indices: 1, material: 0 }] }],
    materials: [{ pbrMetallicRoughness: { baseColorFactor: [shade(0), shade(8), shade(16), 1] } }],
    buffers: [{ byteLength: points.length + indexes.length }],
    bufferViews: [
      { buffer: 0, byteOffset: 0, byteLength: points.length },
      { buffer: 0, byteOffset: points.length, byteLength: indexes.length }
    ],
    accessors: [
      {
        bufferView: 0,
        componentType: 5126,
        count: corners.length,
        type: "VEC3",
        min: [-0.47, -0.33, -0.82],
        max: [0.94, 1, 0.82]
      },
      { bufferView: 1, componentType: 5123, count: faces.length, type: "SCALAR" }
    ]
  }
  const chunks = Buffer.concat([
    chunkOf("JSON", Buffer.from(JSON.stringify(json)), 0x20),
    chunkOf("BIN\0", Buffer.concat([points, indexes]), 0)
  ])
  const head = Buffer.alloc(headBytes)
  head.write("glTF", 0, "latin1")
  head.writeUInt32LE(version, 4)
  head.writeUInt32LE(headBytes + chunks.length, 8)
  return new Uint8Array(Buffer.concat([head, chunks]))
}
