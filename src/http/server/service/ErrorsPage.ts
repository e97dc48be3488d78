import { HttpServerResponse } from "effect/http"
import { problemHelp, taskErrorHelp } from "../../../domain/ErrorHelp.ts"
import { problemCodes } from "../../../domain/Problem.ts"

const style =
  "body{font:16px/1.5 system-ui;max-width:64rem;margin:3rem auto;padding:0 1rem}" +
  "table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.4rem 1rem .4rem 0}" +
  "tr{border-bottom:1px solid #8884}:target{background:#fd06}:root{color-scheme:light dark}" +
  // On narrow screens the cells of a row are stacked
  "@media(max-width:40rem){tr:has(th){display:none}td{display:block;padding:0}tr{display:block;padding:.6rem 0}td:first-child{font-weight:bold}}"

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const row = (id: string, cells: ReadonlyArray<string>): string =>
  `<tr id="${id}">${cells.map((cell) => `<td>${escape(cell)}</td>`).join("")}</tr>`

const table = (heads: ReadonlyArray<string>, rows: ReadonlyArray<string>): string =>
  `<table><tr>${heads.map((head) => `<th>${head}</th>`).join("")}</tr>${rows.join("")}</table>`

/** In ascending order, because JavaScript sorts numeric keys of an object. */
const problems = Object.entries(problemCodes).map(([code, { status, title }]) => ({
  code,
  status,
  title
}))

const helps = new Map(Object.entries(problemHelp))

/**
 * `/docs/errors`: the target of every problem's `type` (the code is the fragment), and the codes of failed tasks.
 * docs/reference/errors.md#problem-codes
 */
export const errorsPage = HttpServerResponse.html(
  [
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Error codes</title>',
    '<meta name="viewport" content="width=device-width">',
    `<style>${style}</style><h1>Error codes</h1>`,
    "<p>Errors are <code>application/problem+json</code> (RFC 9457) with an integer ",
    "<code>code</code>. Quote the <code>Traceparent</code> header when you report one.</p>",
    "<h2>Problems</h2>",
    table(
      ["code", "status", "title", "meaning", "what to do", "send again"],
      problems.map(({ code, status, title }) => {
        const help = helps.get(code)
        const cells = help === undefined ? [] : [help.meaning, help.remedy, help.retry]
        return row(code, [code, String(status), title, ...cells])
      })
    ),
    "<h2>Errors of tasks</h2><p>A failed task is not an HTTP error: GET responds with 200, ",
    "<code>task_info.status</code> <code>failed</code> and one of these codes in ",
    "<code>task_info.error.code</code>. Nothing is charged.</p>",
    table(
      ["code", "meaning", "what to do", "create again"],
      Object.entries(taskErrorHelp).map(([code, { meaning, remedy, retry }]) =>
        row(code, [code, meaning, remedy, retry])
      )
    ),
    "</html>"
  ].join("")
)
