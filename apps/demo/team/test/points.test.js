import assert from "node:assert/strict"
import { test } from "node:test"
import { isGold, points } from "../src/points.js"

test("every whole euro is a point", () => {
  assert.equal(points(2000), 20)
})

test("a euro that is not whole is none", () => {
  assert.equal(points(1999), 19)
})

test("gold begins at 500 points", () => {
  assert.equal(isGold(499), false)
  assert.equal(isGold(500), true)
})
