import assert from "node:assert/strict"
import { test } from "node:test"
import { discount, pieces, shipping, subtotal, total } from "../src/cart.js"

test("an empty cart costs nothing", () => {
  assert.equal(pieces([]), 0)
  assert.equal(subtotal([]), 0)
})

test("a line costs its price times its quantity", () => {
  assert.equal(subtotal([{ price: 250, quantity: 3 }]), 750)
})

test("lines add up", () => {
  const lines = [
    { price: 250, quantity: 2 },
    { price: 1000, quantity: 1 }
  ]
  assert.equal(pieces(lines), 3)
  assert.equal(subtotal(lines), 1500)
})

test("nine pieces get no discount", () => {
  assert.equal(discount([{ price: 100, quantity: 9 }]), 0)
})

test("ten pieces get 15 percent off", () => {
  assert.equal(discount([{ price: 100, quantity: 10 }]), 150)
})

test("twenty pieces get 15 percent off", () => {
  assert.equal(discount([{ price: 100, quantity: 20 }]), 300)
})

test("a small order pays for shipping", () => {
  assert.equal(shipping([{ price: 4999, quantity: 1 }]), 490)
})

test("an order of exactly 50 euros ships free", () => {
  assert.equal(shipping([{ price: 5000, quantity: 1 }]), 0)
})

test("the total is the subtotal less the discount plus shipping", () => {
  assert.equal(total([{ price: 300, quantity: 10 }]), 3040)
})
