/** Hosts that documents may link to, and why they are expected to last. Sources of facts are named, not linked. */
export const externalHosts: Readonly<Record<string, string>> = {
  "github.com": "issues and commits of projects that this one depends on",
  "nodejs.org": "the source of Node",
  "www.rfc-editor.org": "standards"
}
