import { generate } from "selfsigned"

const day = 86_400_000

/** A certificate authority created for one test run, and certificates that it signs. */
export const makeAuthority = async () => {
  const root = await generate([{ name: "commonName", value: "Test root" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true }
    ]
  })
  const issue = async (options?: { readonly name?: string; readonly expired?: boolean }) => {
    const name = options?.name ?? "localhost"
    const now = Date.now()
    const leaf = await generate([{ name: "commonName", value: name }], {
      keyType: "ec",
      algorithm: "sha256",
      ca: { key: root.private, cert: root.cert },
      notBeforeDate: new Date(now - 2 * day),
      notAfterDate: new Date(options?.expired === true ? now - day : now + day),
      extensions: [
        { name: "basicConstraints", cA: false },
        { name: "keyUsage", digitalSignature: true, critical: true },
        { name: "extKeyUsage", serverAuth: true },
        {
          name: "subjectAltName",
          altNames:
            name === "localhost"
              ? [
                  { type: 2, value: "localhost" },
                  { type: 2, value: "hooks.test" },
                  { type: 7, ip: "127.0.0.1" },
                  { type: 7, ip: "::1" }
                ]
              : [{ type: 2, value: name }]
        }
      ]
    })
    return { key: leaf.private, cert: leaf.cert }
  }
  return { ca: root.cert, issue }
}
