import { parser } from "@prometheus-io/lezer-promql"

/** A selector of a query, with the operations around it. */
export interface Selected {
  readonly metric: string
  /** The label names in its matchers. */
  readonly labels: ReadonlyArray<string>
  /** Functions, aggregations and `unless` around it, from the inside out. */
  readonly within: ReadonlyArray<string>
  /** The labels of the surrounding `by (…)`. */
  readonly groupedBy: ReadonlyArray<string>
}

type Node = ReturnType<ReturnType<typeof parser.parse>["cursor"]>["node"]

const ancestors = function* (node: Node): Generator<Node> {
  for (let up = node.parent; up !== null; up = up.parent) yield up
}

/** The selectors of a query. Throws if the query does not conform to Prometheus's grammar. */
export const selectedBy = (query: string): ReadonlyArray<Selected> => {
  const textOf = ({ from, to }: Node) => query.slice(from, to)
  const found: Array<Selected> = []
  parser.parse(query).iterate({
    enter: ({ node, type }) => {
      if (type.isError) throw new Error(`${query}: not PromQL at ${node.from}`)
      if (type.name !== "VectorSelector") return
      const within: Array<string> = []
      const groupedBy: Array<string> = []
      for (const up of ancestors(node)) {
        if (up.name === "FunctionCall") within.push(textOf(up.getChild("FunctionIdentifier")!))
        if (up.name === "BinaryExpr" && up.getChild("Unless") !== null) within.push("unless")
        if (up.name !== "AggregateExpr") continue
        within.push(textOf(up.getChild("AggregateOp")!))
        const labels = up.getChild("AggregateModifier")?.getChild("GroupingLabels")
        groupedBy.push(...(labels?.getChildren("LabelName") ?? []).map(textOf))
      }
      const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? []
      found.push({
        metric: textOf(node.getChild("Identifier")!),
        labels: matchers.map((matcher) => textOf(matcher.getChild("LabelName")!)),
        within,
        groupedBy
      })
    }
  })
  return found
}

/** A metric of `/metrics`: its type and the labels of its series. */
export interface Scraped {
  readonly type: string
  readonly labels: Set<string>
}

/** The series of a scrape by the names that queries use; a histogram has three. */
export const scrapedOf = (text: string): ReadonlyMap<string, Scraped> => {
  const types = new Map<string, string>()
  const scraped = new Map<string, Scraped>()
  for (const line of text.split("\n")) {
    const [, typed = "", type = ""] = /^# TYPE (\S+) (\S+)$/u.exec(line) ?? []
    if (typed !== "") types.set(typed, type)
    const [, name = "", labels = ""] = /^([a-z_]+)(?:\{(.*)\})? \S+$/u.exec(line) ?? []
    if (name === "") continue
    const own = types.get(name) ?? types.get(name.replace(/_(?:bucket|count|sum)$/u, ""))
    if (own === undefined) throw new Error(`${name} has no type`)
    const entry = scraped.get(name) ?? { type: own, labels: new Set() }
    for (const [, label = ""] of labels.matchAll(/(?:^|,)(\w+)="/gu)) entry.labels.add(label)
    scraped.set(name, entry)
  }
  return scraped
}
