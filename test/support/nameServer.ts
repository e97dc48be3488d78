import { createSocket } from "node:dgram"
import type { AddressInfo } from "node:net"

const typeA = 1
const noAddress = 0
const serverFailure = 2
const noSuchName = 3

/** What a name resolves to: an address, an error, or no response. `AAAA` queries are sent together with `A` queries. */
export type NameResult = "address" | "none" | "fails" | "silent"

/** Starts a name server on loopback, whose addresses are all 127.0.0.1. */
export const startNameServer = async (
  resolve: (name: string, type: "A" | "AAAA") => NameResult
) => {
  const socket = createSocket("udp4")
  const asked: Array<string> = []
  socket.on("message", (query, from) => {
    const { end, name } = nameOf(query)
    const isA = query.readUInt16BE(end) === typeA
    asked.push(name)
    const kind = resolve(name, isA ? "A" : "AAAA")
    if (kind === "silent") return
    const question = query.subarray(12, end + 4)
    const hasAddress = kind === "address" && isA
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    const code = kind === "fails" ? serverFailure : kind === "none" ? noSuchName : noAddress
    header.writeUInt16BE(0x8180 | code, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(hasAddress ? 1 : 0, 6)
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1])
    socket.send(Buffer.concat([header, question, ...(hasAddress ? [record] : [])]), from.port)
  })
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve))
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => socket.close(() => resolve()))
  }
}

const nameOf = (query: Buffer) => {
  const labels: Array<string> = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 }
}
