#include <array>
#include <string_view>

#include "bench/load/dataset.h"

namespace fulgur::bench {
namespace {

constexpr std::array<std::string_view, 32> kQuestions = {
    "Write a short letter to a neighbour who practises the trumpet late at night. Be friendly but "
    "clear.",
    "Compare living in a small town with living in a large city for a family with two children. "
    "Give a recommendation.",
    "You are a museum guide. Explain to a group of ten-year-olds why ships made of steel float.",
    "A train leaves at 9:40 and covers 186 km at an average of 62 km/h, with two stops of 6 "
    "minutes each. When does it arrive? Show every step.",
    "A shop sells notebooks in packs of 6 for 4.50 and single ones for 0.90. What is the least "
    "that 20 notebooks can cost? Explain your reasoning.",
    "Three friends share a bill of 87.60. Anna pays twice as much as Ben, and Carl pays 5.10 more "
    "than Ben. How much does each one pay?",
    "A tank is filled by one pipe in 6 hours and emptied by another in 9 hours. Both are open. How "
    "long does it take to fill the empty tank?",
    "In a class of 28 pupils, 17 play chess, 15 sing in the choir and 4 do neither. How many do "
    "both?",
    "Write a Python function that returns the longest run of equal characters in a string, with "
    "tests.",
    "Write a Python function merge_intervals(intervals) that merges overlapping closed intervals "
    "and keeps them sorted.",
    "Write a C++ class for a ring buffer of fixed capacity with push, pop and iteration. Explain "
    "your choices.",
    "Write a SQL query that finds, for each customer, the month with the largest sum of orders. "
    "The table is orders(id, customer_id, amount, ordered_at).",
    "Here is a function: def f(a, b=[]): b.append(a); return b. What is wrong with it, and how "
    "would you repair it?",
    "Write a shell script that finds the ten largest files below a folder and prints their sizes "
    "in MiB.",
    "Explain the difference between a process and a thread to somebody who has just learned to "
    "program.",
    "Why does a hash table slow down when it is nearly full? Give the usual remedies and their "
    "costs.",
    "Tell a story of about 300 words in which a lighthouse keeper receives a message that was sent "
    "fifty years ago.",
    "Write a dialogue between a cook and a chemist who disagree about how to boil an egg.",
    "Summarise the advantages and disadvantages of nuclear, wind and solar power in a table, and "
    "then in one paragraph.",
    "Plan a three-day walking tour for two beginners in a hilly region. They carry everything "
    "themselves.",
    "Which mistakes do people make when they read a graph with two different vertical axes? Give "
    "an example.",
    "Explain how vaccines work, at three levels: for a child, for a student, for a nurse.",
    "Extract every date and every amount of money as JSON from this text: On 3 May the club paid "
    "120 euros for chairs; the lamp of 14 June cost 39.90 and was returned on the 20th.",
    "Give five questions that a good interviewer would ask a candidate for a post in quality "
    "assurance, and say what each one reveals.",
    "Prove that the sum of the first n odd numbers is a square.",
    "A fair coin is thrown until it shows heads twice in a row. What is the expected number of "
    "throws? Derive it.",
    "Describe how a compiler turns a loop into machine code, from the source to the registers.",
    "What would happen to the tides if the Moon were twice as far away? Argue with numbers.",
    "请用三段话介绍中国的二十四节气，并举出两个与农事有关的例子。",
    "用 Python 写一个函数，判断一个字符串是否为回文，忽略大小写和标点，并给出测试。",
    "把下面这句话翻译成英文，并解释你的选词：路漫漫其修远兮，吾将上下而求索。",
    "小明有 48 个苹果，分给同学后还剩四分之一，又买了 15 个，现在有多少个？请写出步骤。"};

}  // namespace

Dataset NaturalQuestions() {
  Dataset dataset;
  for (const std::string_view question : kQuestions) {
    PlannedTurn turn;
    turn.messages.push_back({"user", std::string(question)});
    PlannedSession session;
    session.turns.push_back(std::move(turn));
    dataset.sessions.push_back(std::move(session));
  }
  return dataset;
}

}  // namespace fulgur::bench
