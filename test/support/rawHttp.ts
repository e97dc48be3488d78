import { Effect } from "effect"
import { connect } from "node:net"
import type { HttpResult } from "./gateway.ts"
import { ownClock } from "./ownClock.ts"

/** Sends raw bytes and returns everything received until the connection closed. */
export const rawHttp = (
  port: number,
  send: (write: (bytes: string | Buffer) => boolean) => unknown
) =>
  Effect.promise(
    () =>
      new Promise<{ text: string; millis: number }>((resolve, reject) => {
        const now = ownClock()
        const began = now()
        const chunks: Array<Buffer> = []
        const done = () =>
          resolve({ text: Buffer.concat(chunks).toString(), millis: now() - began })
        const socket = connect(port, "127.0.0.1", () => {
          void send((bytes) => socket.write(bytes))
        })
        socket.setTimeout(10_000, () => {
          socket.destroy()
          reject(new Error(`hangs: ${Buffer.concat(chunks).toString().slice(0, 500)}`))
        })
        socket.on("data", (chunk) => chunks.push(chunk))
        socket.on("error", () => {})
        socket.on("close", done)
      })
  )

/** Sends each request once the previous response is complete. The last request closes the connection. */
export const rawSequence = (port: number, requests: ReadonlyArray<string>) =>
  Effect.promise(
    () =>
      new Promise<string>((resolve, reject) => {
        const left = [...requests]
        let text = ""
        let complete = 0
        const socket = connect(port, "127.0.0.1", () => socket.write(left.shift() ?? ""))
        socket.setTimeout(10_000, () => {
          socket.destroy()
          reject(new Error(`hangs: ${text.slice(0, 500)}`))
        })
        socket.setEncoding("latin1")
        socket.on("data", (chunk) => {
          text += String(chunk)
          const end = text.indexOf("\r\n\r\n", complete) + 4
          const length = /^content-length: (\d+)/imu.exec(text.slice(complete, end))?.[1]
          if (end < 4 || text.length < end + Number(length)) return
          complete = end + Number(length)
          socket.write(left.shift() ?? "")
        })
        socket.on("error", () => {})
        socket.on("close", () => resolve(text))
      })
  )

/** All responses on a connection, in order. Chunked bodies are not decoded. */
export const rawResponses = (text: string): ReadonlyArray<HttpResult> => {
  const answers: Array<HttpResult> = []
  for (let rest = text; rest !== "";) {
    const end = rest.indexOf("\r\n\r\n")
    const [first = "", ...lines] = rest.slice(0, end).split("\r\n")
    const headers = new Headers(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(":")
        return [line.slice(0, colon), line.slice(colon + 1).trim()]
      })
    )
    const body = rest.slice(end + 4, end + 4 + Number(headers.get("content-length")))
    const json = /\bjson\b/u.test(headers.get("content-type") ?? "") ? JSON.parse(body) : undefined
    answers.push({ status: Number(first.split(" ")[1]), headers, text: body, json })
    rest = rest.slice(end + 4 + body.length)
  }
  return answers
}
